package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.example.io", Version: "v1"}

// Widget is the custom resource of the benchmark; bench/widgets.py has the same in Python and installs its CRD.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what people write.
type WidgetSpec struct {
	Size   int64  `json:"size,omitempty"`
	Note   string `json:"note,omitempty"`
	Paused bool   `json:"paused,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
}

// Part is there to give a Widget some weight.
type Part struct {
	Name      string            `json:"name"`
	Image     string            `json:"image,omitempty"`
	Arguments []string          `json:"arguments,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
}

// WidgetStatus is what the operator writes.
type WidgetStatus struct {
	Ready              bool               `json:"ready,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list answer.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

// The copies below are what controller-gen would write for these types.

// DeepCopyInto copies the receiver into out.
func (in *Part) DeepCopyInto(out *Part) {
	*out = *in
	if in.Arguments != nil {
		out.Arguments = append([]string(nil), in.Arguments...)
	}
	if in.Settings != nil {
		out.Settings = make(map[string]string, len(in.Settings))
		for key, value := range in.Settings {
			out.Settings[key] = value
		}
	}
}

// DeepCopyInto copies the receiver into out.
func (in *Widget) DeepCopyInto(out *Widget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Parts != nil {
		out.Spec.Parts = make([]Part, len(in.Spec.Parts))
		for i := range in.Spec.Parts {
			in.Spec.Parts[i].DeepCopyInto(&out.Spec.Parts[i])
		}
	}
	if in.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(in.Status.Conditions))
		for i := range in.Status.Conditions {
			in.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
		}
	}
}

// DeepCopy makes a private copy.
func (in *Widget) DeepCopy() *Widget {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *Widget) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]Widget, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
