package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

// ladder is a cluster in which pods of one namespace are not judged, those of another
// by the yardstick, those of a third by Landwaiter, and those of a fourth by Ratify.
type ladder struct {
	*stack.Stack
	bare   *server
	ratify *server // nil without one
	image  string  // signed, by digest
	tagged string  // the same, by tag
	stored bool    // pods are stored, and deleted after each turn
}

// errNoTools says how to get what a cluster is made of.
var errNoTools = errors.New(`LANDWAITER_CLUSTER_TOOLS and LANDWAITER_CHART_TOOLS are not set; run make bench, or eval "$(test/tools/cluster.sh)" first`)

// ladder starts a cluster, in which Gatekeeper keeps answers for cached. It must be stopped.
func (s *stage) ladder(ctx context.Context, cached time.Duration) (_ *ladder, err error) {
	tools, charts := os.Getenv("LANDWAITER_CLUSTER_TOOLS"), os.Getenv("LANDWAITER_CHART_TOOLS")
	if tools == "" || charts == "" {
		return nil, errNoTools
	}
	dir, err := os.MkdirTemp(s.dir, "cluster-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	l := &ladder{}
	// Audits would use processor time of Gatekeeper as well.
	if l.Stack, err = stack.Start(ctx, stack.Options{Root: s.root, Binary: s.binary, ChartTools: charts,
		Options: cluster.Options{Tools: tools, Dir: dir, AuditInterval: time.Hour, CacheTTL: cached},
		Values: map[string]any{"mutation": map[string]any{"enabled": true, "workloads": true, "namespaces": []any{"ladder-verified"},
			"excludedNamespaces": []any{"kube-system", "gatekeeper-system"}}},
	}); err != nil {
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	if err := l.prepare(ctx, s); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

// prepare makes an image, the namespaces and their constraints.
func (l *ladder) prepare(ctx context.Context, s *stage) error {
	img, err := l.Registry.PushImage(ctx, "shared/app", "v1")
	if err == nil {
		_, err = l.Registry.SignCosign(ctx, img, s.key, fixture.CosignOptions{})
	}
	if err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	tagged, pinned := img.Reference, img.Reference
	tagged.Digest, pinned.Tag = "", ""
	l.tagged, l.image = tagged.String(), pinned.String()
	for _, object := range l.assigns() {
		if err := l.Client.Delete(ctx, object); err != nil {
			return fmt.Errorf("remove Assigns: %w", err)
		}
	}
	if err := l.apply(ctx, ladderResources(s.key)); err != nil {
		return err
	}
	answer, err := l.answer(ctx)
	if err != nil {
		return err
	}
	if l.bare, err = s.bare(ctx, answer, l.GatekeeperCA()); err != nil {
		return err
	}
	rules, err := os.ReadFile(filepath.Join(s.root, "test", "library", "testdata", "yardstick.rego"))
	if err != nil {
		return fmt.Errorf("read the yardstick: %w", err)
	}
	if err := l.apply(ctx, yardstickTemplate(string(rules), l.bare.url, s.issued.Authority.CertificatePEM)); err != nil {
		return err
	}
	if err := l.withRatify(ctx, s); err != nil {
		return err
	}
	if err := l.apply(ctx, ladderConstraints); err != nil {
		return err
	}
	// The constraint for the whole cluster would judge all three namespaces.
	if err := l.Client.Delete(ctx, constraint("verified-images")); err != nil {
		return fmt.Errorf("remove the library's constraint: %w", err)
	}
	return l.until(ctx, l.separated)
}

// withRatify starts Ratify, if there is one, and gives it a namespace.
func (l *ladder) withRatify(ctx context.Context, s *stage) (err error) {
	if os.Getenv(ratifyVariable) == "" {
		return nil
	}
	if l.ratify, err = s.ratify(ctx, l.Registry.Host(), l.GatekeeperCA()); err != nil {
		return err
	}
	template, err := ratifyTemplate(l.ratify.url, s.issued.Authority.CertificatePEM)
	if err != nil {
		return err
	}
	for _, text := range []string{template, ratifyConstraint} {
		if err := l.apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// separated says whether each namespace has its own judge, or none.
func (l *ladder) separated(ctx context.Context) error {
	judges := map[string]string{"ladder-alone": "", "ladder-yardstick": "[yardstick]", "ladder-verified": "[ladder]"}
	if l.ratify != nil {
		judges["ladder-ratify"] = "[ratify]"
	}
	for namespace, judge := range judges {
		said := ""
		if err := l.Client.Create(ctx, dryPod(namespace, l.Registry.Host()+"/nobody/signed:v1"), client.DryRunAll); err != nil {
			said = err.Error()
		}
		for _, each := range []string{"[yardstick]", "[ladder]", "[ratify]", "[verified-images]"} {
			if strings.Contains(said, each) != (each == judge) {
				return fmt.Errorf("%s should be judged by %q alone: %s", namespace, judge, said)
			}
		}
		if err := l.Client.Create(ctx, dryPod(namespace, l.image), client.DryRunAll); err != nil {
			return fmt.Errorf("%s: %w", namespace, err)
		}
	}
	return nil
}

// until waits until check is content.
func (l *ladder) until(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := cluster.Until(ctx, check); err != nil {
		return fmt.Errorf("wait for the cluster: %w", err)
	}
	return nil
}

func (l *ladder) apply(ctx context.Context, text string) error {
	objects, err := cluster.Decode([]byte(text))
	if err == nil {
		err = l.Apply(ctx, objects...)
	}
	if err != nil {
		return fmt.Errorf("prepare the cluster: %w", err)
	}
	return nil
}

// assigns are those of the chart.
func (l *ladder) assigns() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range l.Rendered {
		if object.GetKind() == "Assign" {
			found = append(found, object.DeepCopy())
		}
	}
	return found
}

// answer is what Landwaiter says of the image in the yardstick's namespace, which the
// bare handler will say too.
func (l *ladder) answer(ctx context.Context) ([]byte, error) {
	certificate, err := l.GatekeeperCertificate()
	if err != nil {
		return nil, fmt.Errorf("ask for an answer: %w", err)
	}
	asked, err := newRequest("ladder-yardstick", sample{l.image, true})
	if err != nil {
		return nil, err
	}
	// What it is told is copied, and believed by nobody.
	asking := gatekeeper.New(gatekeeper.Options{URL: fmt.Sprintf("https://127.0.0.1:%d", l.Port()), InsecureAnyServer: true, Certificate: &certificate,
		Timeout: 5 * time.Second})
	defer asking.Close()
	var body []byte
	err = l.until(ctx, func(ctx context.Context) error {
		if body, _, err = asking.Send(ctx, gatekeeper.VerdictPath, asked.body); err != nil || !asked.answered(body) {
			return errors.Join(fmt.Errorf("the answer is %s", body), err)
		}
		return nil
	})
	return body, err
}

func dryPod(namespace, image string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ladder"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
}

// creator creates the same pod again and again, by dry run or with a name of its own.
type creator struct {
	http *http.Client
	url  string
	body []byte
}

func (l *ladder) creator(namespace string) (*creator, error) {
	transport, err := rest.TransportFor(l.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	pod, url := dryPod(namespace, l.image), l.Config.Host+"/api/v1/namespaces/"+namespace+"/pods"
	if l.stored {
		pod.Name, pod.GenerateName = "", "ladder-"
	} else {
		url += "?dryRun=All"
	}
	body, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode a pod: %w", err)
	}
	return &creator{http: &http.Client{Transport: transport, Timeout: startTimeout}, body: body, url: url}, nil
}

// create creates the pod once.
func (c *creator) create(ctx context.Context) answer {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return failed
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(post)
	if err != nil {
		return failed
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return failed
	case response.StatusCode == http.StatusCreated:
		return right
	case bytes.Contains(text, []byte("try again")):
		return undecided
	}
	return wrong
}

func constraint(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
	object.SetKind("VerifiedImages")
	object.SetName(name)
	return object
}
