// Package support collects what somebody needs to help with an installation: versions, how the
// programs run, conditions of resources, findings, metrics and recent Events. It reads with the
// caller's permissions, writes nothing to the cluster, and omits specs, Secrets and ConfigMaps.
// In the rest, it replaces text that looks like a credential.
package support

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

const (
	maxEvents  = 1000
	maxRead    = 20_000  // Events that are read, most of which are not about Landwaiter
	maxMetrics = 4 << 20 // of one pod, in bytes
	maxPods    = 20
	fileMode   = 0o600
)

// Archive is the collected data: text by file name.
type Archive struct {
	files map[string][]byte
	made  time.Time
}

// versions are the versions of the programs.
type versions struct {
	Program    string   `json:"program"` // that made the archive
	Kubernetes string   `json:"kubernetes"`
	Images     []string `json:"images"`
}

// container is how a program runs.
type container struct {
	Deployment policy.ObjectRef `json:"deployment"`
	Name       string           `json:"name"`
	Image      string           `json:"image"`
	Args       []string         `json:"args"`
	Variables  []string         `json:"variables"` // NAME=VALUE, or the name alone
	Replicas   int32            `json:"replicas"`
	Ready      int32            `json:"ready"`
}

// condition is one condition of a resource.
type condition struct {
	Resource   policy.ObjectRef `json:"resource"`
	Generation int64            `json:"generation"`
	Observed   int64            `json:"observedGeneration"`
	Type       string           `json:"type"`
	Status     string           `json:"status"`
	Reason     string           `json:"reason"`
	Message    string           `json:"message"`
	Since      time.Time        `json:"since"`
}

// event is one Event about Landwaiter or its resources.
type event struct {
	About   policy.ObjectRef `json:"about"`
	Type    string           `json:"type"`
	Reason  string           `json:"reason"`
	Message string           `json:"message"`
	Count   int32            `json:"count"`
	Last    time.Time        `json:"last"`
}

// about is the first page of the archive.
const about = `This archive is for whoever helps with an installation of Landwaiter.

versions.json    the program that made it, Kubernetes, and the images of Landwaiter and Gatekeeper
programs.json    how they run: arguments, and the names of variables
conditions.json  the conditions of all resources of landwaiter.dev that may be read
findings.json    what landwaiter check finds
events.json      the newest Events about Landwaiter and its resources
metrics/         what each pod of Landwaiter measures
missing.json     what could not be read, and why

It has no Secret, no ConfigMap and no spec of a resource. What looks like a password, a token or a
private key in the rest was replaced by (redacted). It has names: of namespaces, images, registries
and resources. Look through it before you send it.
`

// Collect reads what the inventory and the report of check lack, and returns everything. The archive
// lists what it may not read. An error means that the API server did not answer.
func Collect(ctx context.Context, config *rest.Config, c client.Reader, inventory *check.Inventory, report check.Report,
	program string) (*Archive, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	s := &collector{ctx: ctx, client: c, inventory: inventory, missing: []string{},
		archive: &Archive{files: map[string][]byte{"README.txt": []byte(about)}, made: inventory.Now}}
	version, err := clients.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the Kubernetes API for its version: %w", err)
	}
	for source, why := range inventory.Unread {
		s.missing = append(s.missing, fmt.Sprintf("%s: %s", source, why.Why))
	}
	deployments := slices.Concat(inventory.Landwaiters, inventory.Gatekeepers)
	s.add("versions.json", versions{Program: program, Kubernetes: version.GitVersion, Images: images(deployments)})
	s.add("programs.json", containers(deployments))
	s.add("conditions.json", conditions(inventory.Resources))
	s.add("findings.json", report)
	s.add("events.json", s.events())
	s.metrics(func(pod, port string) rest.ResponseWrapper {
		return clients.CoreV1().Pods(inventory.Namespace).ProxyGet("http", pod, port, "/metrics", nil)
	})
	slices.Sort(s.missing)
	s.add("missing.json", s.missing)
	return s.archive, ctx.Err()
}

type collector struct {
	ctx       context.Context
	client    client.Reader
	inventory *check.Inventory
	missing   []string
	archive   *Archive
}

// add adds a file of JSON, in which each text is redacted.
func (s *collector) add(name string, value any) {
	text, err := json.Marshal(value)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err = cmp.Or(err, encoder.Encode(redactAll(plain))); err != nil {
		s.missing = append(s.missing, fmt.Sprintf("%s: %v", name, err))
		return
	}
	s.archive.files[name] = made.Bytes()
}

// lacks records that a list could not be read.
func (s *collector) lacks(what string, err error) {
	s.missing = append(s.missing, what+": "+redact(err.Error()))
}

// events returns the newest Events about resources of landwaiter.dev, and all in Landwaiter's namespace.
func (s *collector) events() []event {
	found := []event{}
	var list corev1.EventList
	if err := s.client.List(s.ctx, &list, client.Limit(maxRead)); err != nil {
		s.lacks("events of all namespaces", err)
		list = corev1.EventList{}
		if err := s.client.List(s.ctx, &list, client.InNamespace(s.inventory.Namespace), client.Limit(maxRead)); err != nil {
			s.lacks("events of namespace "+s.inventory.Namespace, err)
		}
	}
	if list.Continue != "" {
		s.missing = append(s.missing, fmt.Sprintf("events past the first %d", maxRead))
	}
	for i := range list.Items {
		e := &list.Items[i]
		ours := strings.HasPrefix(e.InvolvedObject.APIVersion, v1beta1.GroupVersion.Group+"/") || e.ReportingController == v1beta1.ReportSource ||
			e.Source.Component == v1beta1.ReportSource
		if !ours && e.Namespace != s.inventory.Namespace {
			continue
		}
		last := e.LastTimestamp.Time
		for _, at := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
			if last.IsZero() {
				last = at
			}
		}
		found = append(found,
			event{policy.ObjectRef{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}, e.Type,
				e.Reason, e.Message, max(e.Count, 1), last})
	}
	slices.SortStableFunc(found, func(a, b event) int { return b.Last.Compare(a.Last) })
	return found[:min(len(found), maxEvents)]
}

// metrics adds the metrics of Landwaiter's pods.
func (s *collector) metrics(of func(pod, port string) rest.ResponseWrapper) {
	var pods corev1.PodList
	if err := s.client.List(s.ctx, &pods, client.InNamespace(s.inventory.Namespace)); err != nil {
		s.lacks("pods of namespace "+s.inventory.Namespace, err)
		return
	}
	for _, pod := range pods.Items[:min(len(pods.Items), maxPods)] {
		port := metricsPort(pod)
		if port == "" {
			continue
		}
		text, err := read(s.ctx, of(pod.Name, port))
		if err != nil {
			s.lacks("metrics of pod "+pod.Name, err)
			continue
		}
		s.archive.files["metrics/"+pod.Name+".txt"] = []byte(redact(string(text)))
	}
}

// read reads an answer up to a limit.
func read(ctx context.Context, from rest.ResponseWrapper) (text []byte, err error) {
	stream, err := from.Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err = io.ReadAll(io.LimitReader(stream, maxMetrics))
	return text, cmp.Or(err, stream.Close())
}

// metricsPort is the number of a pod's port with the name metrics, "" without one.
func metricsPort(pod corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "metrics" {
				return fmt.Sprint(port.ContainerPort)
			}
		}
	}
	return ""
}

func images(deployments []appsv1.Deployment) []string {
	found := map[string]bool{}
	for _, d := range deployments {
		for _, c := range d.Spec.Template.Spec.Containers {
			found[c.Image] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// harmless lists variables whose values are useful and not secret.
func harmless() []string {
	return []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_PROTOCOL"}
}

func containers(deployments []appsv1.Deployment) []container {
	found := []container{}
	for _, d := range deployments {
		replicas := int32(1)
		if d.Spec.Replicas != nil {
			replicas = *d.Spec.Replicas
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			made := container{Deployment: policy.ObjectRef{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}, Name: c.Name, Image: c.Image,
				Args: append([]string{}, c.Args...), Variables: []string{}, Replicas: replicas, Ready: d.Status.ReadyReplicas}
			for _, variable := range c.Env {
				if slices.Contains(harmless(), variable.Name) {
					made.Variables = append(made.Variables, variable.Name+"="+variable.Value)
				} else {
					made.Variables = append(made.Variables, variable.Name)
				}
			}
			found = append(found, made)
		}
	}
	return found
}

func conditions(resources []v1beta1.Object) []condition {
	found := []condition{}
	for _, object := range resources {
		for _, c := range object.CommonStatus().Conditions {
			source := policy.ObjectRef{Kind: v1beta1.KindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
			found = append(found,
				condition{source, object.GetGeneration(), c.ObservedGeneration, c.Type, string(c.Status), c.Reason, c.Message,
					c.LastTransitionTime.Time})
		}
	}
	return found
}

// Names returns the names of the files, sorted.
func (a *Archive) Names() []string { return slices.Sorted(maps.Keys(a.files)) }

// Write writes the archive as a compressed tar.
func (a *Archive) Write(to io.Writer) error {
	compressed := gzip.NewWriter(to)
	packed := tar.NewWriter(compressed)
	for _, name := range a.Names() {
		header := &tar.Header{Name: "landwaiter-support/" + name, Mode: fileMode, Size: int64(len(a.files[name])), ModTime: a.made,
			Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := packed.Write(a.files[name]); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return cmp.Or(packed.Close(), compressed.Close())
}
