// The benchmark operator on controller-runtime: one owned ConfigMap and a status for each Widget in a namespace.
//
// Written as its documentation advises: cached reads, an owned kind that is watched, an own status write that wakes
// nobody, nothing written where nothing differs, managed fields left out of the cache, and no rate limit in the client
// (ctrl.GetConfig sets none).
//
// --read-your-writes sets an option that is off by default and called experimental. Without it the event of a child just
// written wakes the reconciler while its cache still lacks the status just written, which is then written again: half as
// many status writes more under load.
//
// Usage: controller_runtime --kubeconfig FILE [--read-your-writes]
package main

import (
	"context"
	"flag"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	namespace    = "bench"
	fieldManager = "bench"
	workers      = 16
)

type reconciler struct {
	client client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.client.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if widget.Spec.Paused || !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := r.applyChild(ctx, &widget); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeStatus(ctx, &widget)
}

// applyChild writes the ConfigMap unless the cache shows it as it should be.
func (r *reconciler) applyChild(ctx context.Context, widget *Widget) error {
	size := strconv.FormatInt(widget.Spec.Size, 10)
	var child corev1.ConfigMap
	err := r.client.Get(ctx, client.ObjectKeyFromObject(widget), &child)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && child.Data["size"] == size && metav1.IsControlledBy(&child, widget) {
		return nil
	}
	owner := applymeta.OwnerReference().
		WithAPIVersion(groupVersion.String()).
		WithKind("Widget").
		WithName(widget.Name).
		WithUID(widget.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
	desired := applycore.ConfigMap(widget.Name, widget.Namespace).
		WithOwnerReferences(owner).
		WithData(map[string]string{"size": size})
	return r.client.Apply(ctx, desired, client.FieldOwner(fieldManager), client.ForceOwnership)
}

// writeStatus patches the status unless it is as it should be.
func (r *reconciler) writeStatus(ctx context.Context, widget *Widget) error {
	if widget.Status.Ready && widget.Status.ObservedGeneration == widget.Generation {
		return nil
	}
	base := widget.DeepCopy()
	widget.Status.Ready = true
	widget.Status.ObservedGeneration = widget.Generation
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, widget, client.MergeFrom(base)))
}

func run(readYourWrites bool) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	addToScheme(scheme)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Client: client.Options{
			Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readYourWrites},
		},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{client: manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	readYourWrites := flag.Bool("read-your-writes", false, "let cached reads wait for own writes")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*readYourWrites); err != nil {
		ctrl.Log.Error(err, "the operator ended")
		os.Exit(1)
	}
}
