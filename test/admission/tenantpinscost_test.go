//go:build nightly

package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// processor is the processor time that a process has used.
func processor(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	require.NoError(t, err)
	system, err := strconv.ParseInt(string(fields[12]), 10, 64)
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// quiet waits until Gatekeeper has written its statuses of new Assigns: that takes
// processor time too, and no admission waits for it.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	last := processor(t, w.GatekeeperPID())
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.Log("Gatekeeper does not come to rest: its audits are in the figures, of both sides alike")
			return
		case <-ticker.C:
			now := processor(t, w.GatekeeperPID())
			if now-last < 200*time.Millisecond {
				return
			}
			last = now
		}
	}
}

// cost is what one admission takes, and beside it one in a namespace that Gatekeeper
// exempts: the machine is not always as busy.
type cost struct {
	took, exempt []time.Duration
	processor    time.Duration // of Gatekeeper
}

func (c *cost) median() time.Duration { return quantile(c.took, 50) }

func quantile(took []time.Duration, percent int) time.Duration {
	slices.Sort(took)
	return took[len(took)*percent/100]
}

// over is by how much an admission is slower than without, where the exempt ones are not.
func (c *cost) over(without *cost) float64 {
	busy := float64(quantile(c.exempt, 50)) / float64(quantile(without.exempt, 50))
	return float64(c.median()) / float64(without.median()) / max(busy, 1)
}

func (c *cost) String() string {
	return fmt.Sprintf("median %s, p99 %s (%s in an exempt namespace), %s of Gatekeeper's processor time",
		c.median().Round(10*time.Microsecond), quantile(c.took, 99).Round(10*time.Microsecond), quantile(c.exempt, 50).Round(10*time.Microsecond), c.processor)
}

func (w *world) admissions(t *testing.T, seen, exempt string, pods int) *cost {
	t.Helper()
	made := &cost{}
	before := processor(t, w.GatekeeperPID())
	for range pods {
		for ns, took := range map[string]*[]time.Duration{seen: &made.took, exempt: &made.exempt} {
			began := time.Now()
			require.NoError(t, w.try(t.Context(), ns, w.signed))
			*took = append(*took, time.Since(began))
		}
	}
	made.processor = (processor(t, w.GatekeeperPID()) - before) / time.Duration(pods)
	return made
}

// pinnedIn waits until Gatekeeper has read all Assigns, or that they are gone: a pod in
// the namespace of the last one shows it.
func (w *world) pinnedIn(t *testing.T, ns string, want bool) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		made := suite.Pod(ns, "probe", w.signed)
		if err := w.Client.Create(ctx, made, client.DryRunAll); err != nil {
			return err
		}
		if strings.Contains(made.Spec.Containers[0].Image, "@") != want {
			return errors.New("Gatekeeper has not read the Assigns")
		}
		return nil
	})
	w.quiet(t)
}

// each calls do for all objects, several at a time.
func each(t *testing.T, objects []*unstructured.Unstructured, do func(context.Context, *unstructured.Unstructured) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for _, object := range objects {
		group.Go(func() error { return do(ctx, object) })
	}
	require.NoError(t, group.Wait())
}

// Every Assign costs every admission in the cluster, whoever's namespace it is for. The
// operator's limit on Tenants with Stores of their own comes from the figures that this
// logs: the machine is too busy at times to assert them.
func TestAdmissionWithTenantsThatPinTheirTags(t *testing.T) {
	w := installed(t)
	tenants, pods := 50, 100
	if text := os.Getenv("LANDWAITER_TENANTS"); text != "" {
		var err error
		tenants, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	const exempt = metav1.NamespaceSystem
	ns, last := w.namespace(t), w.namespace(t)
	var objects []*unstructured.Unstructured
	m := w.mutation(t)
	for i := range tenants {
		home := fmt.Sprintf("e2e-load-%d", i)
		if i == tenants-1 {
			home = last
		}
		objects = append(objects, m.Stores(tenantOf(fmt.Sprintf("load-%d", i), home), home, []string{home, home + "-a", home + "-b"})...)
	}
	remove := func(ctx context.Context, object *unstructured.Unstructured) error {
		return client.IgnoreNotFound(w.Client.Delete(ctx, object.DeepCopy()))
	}
	t.Cleanup(func() {
		for _, object := range objects {
			if err := remove(context.Background(), object); err != nil {
				t.Errorf("delete %s: %v", object.GetName(), err)
			}
		}
	})
	w.admissions(t, ns, exempt, 30) // warm
	without, with := &cost{}, &cost{}
	for range 2 {
		w.quiet(t)
		without.and(w.admissions(t, ns, exempt, pods))
		for _, kind := range []string{"Provider", "Assign"} {
			each(t, objects, func(ctx context.Context, object *unstructured.Unstructured) error {
				if object.GetKind() != kind {
					return nil
				}
				return w.Client.Create(ctx, object.DeepCopy())
			})
		}
		w.pinnedIn(t, last, true)
		with.and(w.admissions(t, ns, exempt, pods))
		each(t, objects, remove)
		w.pinnedIn(t, last, false)
	}
	t.Logf("no Tenants with Stores: %s", without)
	t.Logf("%d: %s; %.2f of none", tenants, with, with.over(without))
}

func (c *cost) and(other *cost) {
	c.took, c.exempt = append(c.took, other.took...), append(c.exempt, other.exempt...)
	if c.processor += other.processor; c.processor != other.processor {
		c.processor /= 2
	}
}
