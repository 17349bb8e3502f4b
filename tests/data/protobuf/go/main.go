// Command samples prints random Kubernetes objects, one JSON line each: the protobuf body and the JSON that Go makes of
// that body. Usage: go mod tidy && go run . SEED PER_KIND NIL_CHANCE [KIND...]
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

type sample struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Body       string          `json:"body"`
	Tree       json.RawMessage `json:"tree"`
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func fill(random *rand.Rand) []any {
	raw := func() []byte {
		return []byte([]string{`{"a":[1,2.5,null,{"b":"c"}]}`, `"text"`, `3`, `{}`, `false`}[random.Intn(5)])
	}
	quantities := []string{"0", "1", "100m", "1500m", "2Gi", "1k", "1000", "0.5", "1.500", "1e3", "1E3", "12e-3", "1Ki", "1024", "-5", "+7", "10Mi", "1025Ki", "0.1Gi", "5n", "1000000000000000000000"}
	return []any{
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(quantities[random.Intn(len(quantities))])
		},
		func(t *metav1.Time, c randfill.Continue) {
			if random.Intn(4) > 0 {
				t.Time = time.Unix(random.Int63n(4e9)-2e9, 0)
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			if random.Intn(4) > 0 {
				t.Time = time.Unix(random.Int63n(4e9)-2e9, random.Int63n(1e9))
			}
		},
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(random.Int63n(1e14) - 5e13) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			if random.Intn(2) > 0 {
				*v = intstr.FromInt32(random.Int31() - 1e9)
			} else {
				*v = intstr.FromString(c.String(5))
			}
		},
		func(v *runtime.RawExtension, c randfill.Continue) {
			if random.Intn(4) > 0 {
				v.Raw = raw()
			}
		},
		func(v *metav1.FieldsV1, c randfill.Continue) { v.Raw = []byte(`{"f:metadata":{}}`) },
		func(v *apiextensionsv1.JSON, c randfill.Continue) { v.Raw = raw() },
		func(v *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			v.Type, v.Description, v.Nullable, v.MaxLength, v.Maximum = c.String(5), c.String(5), c.Bool(), ptr(random.Int63()), ptr(random.Float64()*1e3)
			if random.Intn(3) == 0 {
				v.Minimum, v.Default = ptr(float64(random.Intn(10))), &apiextensionsv1.JSON{Raw: raw()}
				v.Ref, v.XIntOrString, v.XListMapKeys = ptr("x"), true, []string{"a", "b"}
				v.Enum = []apiextensionsv1.JSON{{Raw: raw()}, {Raw: raw()}}
			}
			inner := func() *apiextensionsv1.JSONSchemaProps {
				var s apiextensionsv1.JSONSchemaProps
				c.Fill(&s)
				return &s
			}
			switch random.Intn(8) {
			case 0:
				v.Properties = map[string]apiextensionsv1.JSONSchemaProps{"p": *inner(), "q": *inner()}
			case 1:
				v.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: inner()}
			case 2:
				v.Items = &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []apiextensionsv1.JSONSchemaProps{*inner()}}
			case 3:
				v.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: inner()}
			case 4:
				v.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: random.Intn(2) == 0}
			case 5:
				v.Dependencies = apiextensionsv1.JSONSchemaDependencies{"d": {Property: []string{"a"}}, "e": {Schema: inner()}, "f": {}}
			}
		},
	}
}

func ptr[T any](v T) *T { return &v }

func main() {
	seed, err := strconv.ParseInt(os.Args[1], 10, 64)
	check(err)
	perKind, err := strconv.Atoi(os.Args[2])
	check(err)
	nilChance, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	wanted := map[string]bool{}
	for _, kind := range os.Args[4:] {
		wanted[kind] = true
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, admissionregistrationv1alpha1.AddToScheme, admissionregistrationv1beta1.AddToScheme,
		apidiscoveryv2.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		resourcev1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme,
		apiregistrationv1.AddToScheme,
	} {
		check(add(scheme))
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{})
	kinds := []schema.GroupVersionKind{}
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version != "__internal" && gvk.Kind != "WatchEvent" && (len(wanted) == 0 || wanted[gvk.Kind]) {
			kinds = append(kinds, gvk)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	random := rand.New(rand.NewSource(seed))
	filler := randfill.New().RandSource(rand.NewSource(seed+1)).NilChance(nilChance).NumElements(0, 2).MaxDepth(12).Funcs(fill(random)...)
	serializer := protobuf.NewSerializer(scheme, scheme)
	out := json.NewEncoder(os.Stdout)
	for _, gvk := range kinds {
		for i := 0; i < perKind; i++ {
			object, err := scheme.New(gvk)
			check(err)
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			var body bytes.Buffer
			if err := serializer.Encode(object, &body); err != nil {
				continue // no protobuf form
			}
			read, _, err := serializer.Decode(body.Bytes(), nil, nil)
			check(err)
			read.GetObjectKind().SetGroupVersionKind(gvk)
			tree, err := json.Marshal(read)
			if err != nil {
				fmt.Fprintln(os.Stderr, gvk, err)
				continue
			}
			check(out.Encode(sample{gvk.GroupVersion().String(), gvk.Kind, base64.StdEncoding.EncodeToString(body.Bytes()), tree}))
		}
	}
}
