// The benchmark of webhook servers: a mutating webhook for Pods on controller-runtime, and the load for any such server.
//
// Usage: webhook_server serve --port PORT --certificates FOLDER
//
//	webhook_server load --url URL --ca FILE --body FILE --connections N --seconds S [--rate N]
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type marker struct{}

func (marker) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["marked"] = "yes"
	return nil
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	port := flags.Int("port", 9443, "")
	certificates := flags.String("certificates", "", "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New())
	server := webhook.NewServer(webhook.Options{
		Host:    "127.0.0.1",
		Port:    *port,
		CertDir: *certificates,
		// As kubebuilder's projects have it.
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }},
	})
	server.Register("/mutate--v1-pod", admission.WithDefaulter[*corev1.Pod](scheme.Scheme, marker{}))
	return server.Start(ctrl.SetupSignalHandler())
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2:])
	} else {
		err = load(os.Args[2:])
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
}
