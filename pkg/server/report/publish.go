package report

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Probe checks facts that only the process knows.
type Probe func(ctx context.Context) []resource.Fact

// Publisher writes the facts of the process into one report in its own namespace, where check
// reads it. Only the leader runs one.
type Publisher struct {
	reports     dynamic.ResourceInterface
	namespace   string
	certificate func() string
	probes      []Probe
	log         *logrus.Logger
	written     *unstructured.Unstructured
}

// NewPublisher returns a Publisher for a namespace of the API server of config. The
// certificate is the serving one, in PEM, or empty.
func NewPublisher(config *rest.Config, namespace string, certificate func() string, log *logrus.Logger,
	probes ...Probe) (*Publisher, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return &Publisher{reports: client.Resource(reportsResource()).Namespace(namespace), namespace: namespace, certificate: certificate,
		probes: probes, log: log}, nil
}

// Run checks and writes until ctx ends. Calls must not overlap.
func (p *Publisher) Run(ctx context.Context) error {
	p.written = nil // another leader may have written since
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.log.WithError(err).Warn("what check cannot see by itself is not published, will try again")
		}
	}, factsInterval)
	return nil
}

// publish checks once, and writes changes.
func (p *Publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	facts := resource.Facts{Certificate: p.certificate()}
	for _, probe := range p.probes {
		facts.List = append(facts.List, probe(ctx)...)
	}
	object := bounded(facts).Report(p.namespace)
	if reflect.DeepEqual(object, p.written) {
		return nil
	}
	_, err := p.reports.Apply(ctx, resource.FactsName, object, metav1.ApplyOptions{FieldManager: v1beta1.ReportSource, Force: true})
	if apierrors.IsNotFound(err) {
		return nil // without the CRD there are no reports at all, which is already logged
	}
	if err != nil {
		return fmt.Errorf("apply Report %s: %w", resource.FactsName, err)
	}
	p.written = object
	return nil
}

// bounded returns the facts that fit into a report.
func bounded(facts resource.Facts) resource.Facts {
	facts.List = slices.Clone(facts.List[:min(len(facts.List), maxFacts)])
	for i := range facts.List {
		facts.List[i].Message = policy.Shown(facts.List[i].Message, maxFactBytes)
	}
	return facts
}

// Clock compares the clock of this process with the API server's, which is in the header of
// every answer.
func Clock(config *rest.Config, now func() time.Time) (Probe, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the Kubernetes API: %w", err)
	}
	return func(ctx context.Context) []resource.Fact {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("version").String(), nil)
		if err != nil {
			return nil
		}
		before := now()
		response, err := client.Do(request)
		if err != nil {
			return nil // then nothing is published either
		}
		_ = response.Body.Close() // only its header is read
		date, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil {
			return nil
		}
		return []resource.Fact{clockFact(date, before, now())}
	}, nil
}

// clockFact evaluates the time in a server's answer between two times of this process. A date
// has whole seconds.
func clockFact(date, before, after time.Time) resource.Fact {
	ahead, behind := before.Sub(date.Add(time.Second)), date.Sub(after)
	if ahead > maxClockSkew || behind > maxClockSkew {
		return resource.Fact{ID: resource.FactClockSkew, Bad: true,
			Message: fmt.Sprintf("the clock of Landwaiter differs by more than %s from that of the API server", maxClockSkew)}
	}
	return resource.Fact{ID: resource.FactClockSkew, Message: "the clock agrees with that of the API server"}
}
