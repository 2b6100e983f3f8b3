package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Probe looks at something that only the process knows.
type Probe func(ctx context.Context) []Fact

// Publisher writes what the process knows into one report in its own namespace, where
// doctor reads it. Only the replica that leads runs one.
type Publisher struct {
	reports     dynamic.ResourceInterface
	certificate func() string
	probes      []Probe
	log         *logrus.Logger
	written     string
}

// NewPublisher returns a Publisher for a namespace of the API server of config. The
// certificate is the one that is served, in PEM, or empty.
func NewPublisher(config *rest.Config, namespace string, certificate func() string, log *logrus.Logger, probes ...Probe) (*Publisher, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return &Publisher{reports: client.Resource(reportVersion().WithResource(v1beta1.ReportResource)).Namespace(namespace), certificate: certificate, probes: probes, log: log}, nil
}

// Run looks and writes until ctx ends. Calls must not overlap.
func (p *Publisher) Run(ctx context.Context) error {
	p.written = "" // another leader may have written since
	ticker := time.NewTicker(factsInterval)
	defer ticker.Stop()
	for {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.log.WithError(err).Warn("what doctor cannot see by itself is not published, will try again")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// publish looks once, and writes if something has changed.
func (p *Publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	var facts Facts
	for _, probe := range p.probes {
		facts.List = append(facts.List, probe(ctx)...)
	}
	facts.Certificate = p.certificate()
	object := reportOf(facts)
	text := encoded(object.Object)
	if text == p.written {
		return nil
	}
	_, err := p.reports.Apply(ctx, FactsName, object, metav1.ApplyOptions{FieldManager: factsSource, Force: true})
	if apierrors.IsNotFound(err) {
		return nil // without the CRD there are no reports at all, which the log says already
	}
	if err != nil {
		return fmt.Errorf("apply Report %s: %w", FactsName, err)
	}
	p.written = text
	return nil
}

// reportOf writes facts as a report. It has no time, so that it changes with the facts only:
// the lease says whether somebody still looks.
func reportOf(facts Facts) *unstructured.Unstructured {
	results := []any{}
	add := func(rule, result, message, about string) {
		entry := map[string]any{"source": factsSource, "policy": "installation", "rule": rule, "result": result, "message": message}
		if about != "" {
			entry["properties"] = map[string]any{aboutProperty: about}
		}
		results = append(results, entry)
	}
	if facts.Certificate != "" {
		add(certificateRule, resultPass, facts.Certificate, "")
	}
	for _, fact := range facts.List[:min(len(facts.List), maxFacts)] {
		result := resultPass
		if fact.Bad {
			result = resultFail
		}
		add(string(fact.ID), result, shown(fact.Message), fact.About)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": reportVersion().String(), "kind": reportKind,
		"metadata": map[string]any{"name": FactsName, "labels": map[string]any{v1beta1.LabelReport: FactsLabel}},
		"source":   factsSource, "results": results}}
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
	return func(ctx context.Context) []Fact {
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
		return []Fact{clockFact(date, before, now())}
	}, nil
}

// clockFact judges an answer of a server between two moments of this process. A date has
// whole seconds.
func clockFact(date, before, after time.Time) Fact {
	ahead, behind := before.Sub(date.Add(time.Second)), date.Sub(after)
	if ahead > maxClockSkew || behind > maxClockSkew {
		return Fact{ID: ClockSkew, Bad: true, Message: fmt.Sprintf("the clock of Landwaiter differs by more than %s from that of the API server", maxClockSkew)}
	}
	return Fact{ID: ClockSkew, Message: "the clock agrees with that of the API server"}
}
