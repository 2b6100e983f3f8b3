// Package enforcement measures what Gatekeeper does with Landwaiter's verdicts in each namespace:
// deny, warn, list (dryrun), or nothing. Only the leader runs it. It reads constraints, and names
// and labels of namespaces, and writes nothing.
package enforcement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

const (
	// interval is how often the leader reads the modes. People change them a few times a year, and
	// look at the dashboard then.
	interval = 30 * time.Second
	// requestTimeout bounds one request to the API server.
	requestTimeout = 10 * time.Second
	// maxConstraints bounds the constraints that are read: an installation has a handful.
	maxConstraints = 200
	// pageSize is the number of namespaces per request: teams may put much metadata on theirs.
	pageSize = 100
)

// Cluster knows the existing namespaces and their Tenants. It is safe for concurrent use.
type Cluster interface {
	// Namespaces returns the names of existing namespaces, sorted.
	Namespaces() []verify.Namespace
	// Tenant returns the Tenant that holds a namespace, "" if none does.
	Tenant(namespace verify.Namespace) string
}

// Meter is a collector with the mode of each namespace while [Meter.Lead] runs.
type Meter struct {
	cluster     Cluster
	constraints dynamic.ResourceInterface
	namespaces  metadata.Getter
	log         *logrus.Logger
	desc        *prometheus.Desc

	mu     sync.Mutex
	counts map[series]int
}

// New returns a Meter for the API server of config. It registers its metric with metrics.
func New(config *rest.Config, cluster Cluster, log *logrus.Logger, metrics prometheus.Registerer) (*Meter, error) {
	objects, err := dynamic.NewForConfig(config)
	names, namesErr := metadata.NewForConfig(config)
	if err := errors.Join(err, namesErr); err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	m := &Meter{cluster: cluster, log: log,
		constraints: objects.Resource(schema.GroupVersionResource{Group: "constraints.gatekeeper.sh", Version: "v1beta1",
			Resource: "verifiedimages"}),
		namespaces: names.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}),
		desc: prometheus.NewDesc("landwaiter_namespace_mode",
			"Namespaces by the strictest enforcementAction of the VerifiedImages constraints that match all their pods: deny, warn, dryrun or "+
				"none. Of the replica that leads.", []string{"mode", "namespace", "tenant"}, nil)}
	if err := metrics.Register(m); err != nil {
		return nil, fmt.Errorf("register the modes of namespaces: %w", err)
	}
	return m, nil
}

// Describe implements [prometheus.Collector].
func (m *Meter) Describe(into chan<- *prometheus.Desc) { into <- m.desc }

// Collect implements [prometheus.Collector].
func (m *Meter) Collect(into chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, n := range m.counts {
		into <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(n), string(s.mode), s.namespace, s.tenant)
	}
}

func (m *Meter) set(counts map[series]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = counts
}

// Lead measures repeatedly until ctx ends. Calls must not overlap. Without an answer there are
// no series: earlier values may be wrong by now.
func (m *Meter) Lead(ctx context.Context) error {
	defer m.set(nil)
	complained := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		counts, err := m.look(ctx)
		m.set(counts)
		if err != nil && ctx.Err() == nil && !complained {
			complained = true
			m.log.WithError(err).Warn("the modes of namespaces are not measured, will try again")
		}
	}, interval)
	return nil
}

// look reads the constraints and the labels of namespaces once.
func (m *Meter) look(ctx context.Context) (map[series]int, error) {
	ctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	constraints, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	modes := map[verify.Namespace]constraint.Mode{}
	if err := m.judge(ctx, constraints, modes); err != nil {
		return nil, err
	}
	return count(m.cluster, modes), nil
}

// list returns the constraints.
func (m *Meter) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := m.constraints.List(ctx, metav1.ListOptions{Limit: maxConstraints})
	if apierrors.IsNotFound(err) {
		return nil, nil // without the template of the library, nothing asks Landwaiter
	}
	if err != nil {
		return nil, fmt.Errorf("list constraints of kind VerifiedImages: %w", err)
	}
	if list.GetContinue() != "" {
		return nil, fmt.Errorf("list constraints of kind VerifiedImages: there are more than %d", maxConstraints)
	}
	return list.Items, nil
}

// judge determines the modes of all namespaces by their labels, which it does not keep: a team
// may put large ones on its namespaces.
func (m *Meter) judge(ctx context.Context, constraints []unstructured.Unstructured, modes map[verify.Namespace]constraint.Mode) error {
	for next := ""; ; {
		page, cancel := context.WithTimeout(ctx, requestTimeout)
		list, err := m.namespaces.List(page, metav1.ListOptions{Limit: pageSize, Continue: next})
		cancel()
		if err != nil {
			return fmt.Errorf("list namespaces: %w", err)
		}
		for i := range list.Items {
			namespace := verify.Namespace(list.Items[i].Name)
			modes[namespace] = constraint.ModeIn(constraints, list.Items[i].Name, list.Items[i].Labels)
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
