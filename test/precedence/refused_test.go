package precedence

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// No edit of a resource that the schema refuses, though a cluster stored it, lets in what the resource
// itself does not.
func TestNothingIsAllowedBecauseTheSchemaRefusesAResource(t *testing.T) {
	engine := verify.NewEngine(nothing{}, now, verify.Options{})
	compared, denied := 0, 0
	for seed := range count() / 50 {
		d := newDice(seed)
		w, shelves := d.world(), &shelves{}
		w.Evidence = d.evidence()
		require.NoError(t, shelves.fill(w.Evidence))
		objects := w.objects()
		i := d.IntN(len(objects.Resources))
		edited, why := d.refused(t, objects.Resources[i])
		before, _ := resolve.Empty(shelves.outside()).Next(resolve.Group(objects), nil)
		changed := objects
		changed.Resources = slices.Clone(objects.Resources)
		changed.Resources[i] = resource.Refuse(edited, why)
		after, problems := resolve.Empty(shelves.outside()).Next(resolve.Group(changed), nil)
		require.True(t, slices.ContainsFunc(problems, func(p resource.Problem) bool { return p.Source == resource.RefOf(edited) }),
			"seed %d: nobody is told of %s: %v", seed, resource.RefOf(edited), why)
		for namespace := range w.Namespaces {
			for _, asked := range images() {
				was, is := ask(t, engine, before, namespace, asked), ask(t, engine, after, namespace, asked)
				// An exception lets in what is denied, and not what is undecided.
				more := is.Outcome == policy.Allowed && (was.Outcome == policy.Denied || was.Outcome == policy.Undecided && is.Exception == (policy.ObjectRef{}))
				require.False(t, more, "seed %d: %s in %s is allowed since %s is refused: %v", seed, asked.Name, namespace, resource.RefOf(edited), why)
				if compared++; is.Outcome != policy.Allowed && was.Outcome == policy.Allowed {
					denied++
				}
			}
		}
	}
	t.Logf("%d verdicts, %d of them denied what was allowed before", compared, denied)
	require.Greater(t, denied, compared/100)
}

// refused returns a resource with one edit of its spec that the schema refuses, and why it does.
func (d dice) refused(t *testing.T, object v1beta1.Object) (v1beta1.Object, error) {
	t.Helper()
	kind, ok := v1beta1.KindNamed(resource.RefOf(object).Kind)
	require.True(t, ok)
	text, err := json.Marshal(object)
	require.NoError(t, err)
	for range 10_000 {
		var whole map[string]any
		require.NoError(t, json.Unmarshal(text, &whole))
		spec, ok := whole["spec"].(map[string]any)
		require.True(t, ok)
		written.Edit(d.Rand, spec)
		other, err := json.Marshal(whole)
		require.NoError(t, err)
		edited := kind.New()
		if json.Unmarshal(other, edited) != nil || movesNamespaces(object, edited) {
			continue
		}
		if why := schema.Embedded().Refuses(t.Context(), edited); why != nil {
			return edited, why
		}
	}
	require.FailNow(t, "the schema refuses no edit", "%s", text)
	return nil, nil
}

// movesNamespaces reports whether an edit makes another Tenant: what the first one denied would be nobody's.
func movesNamespaces(object, edited v1beta1.Object) bool {
	was, ok := object.(*v1beta1.Tenant)
	is, _ := edited.(*v1beta1.Tenant)
	return ok && (was.Spec.HomeNamespace != is.Spec.HomeNamespace || was.Spec.NamespacePrefix != is.Spec.NamespacePrefix ||
		!slices.Equal(was.Spec.Namespaces, is.Spec.Namespaces))
}

// verdict is an outcome, and the exception that made it.
type verdict struct {
	Outcome   policy.Outcome
	Exception policy.ObjectRef
}

// ask returns the verdict on an image.
func ask(t *testing.T, engine *verify.Engine, snapshot *resolve.Snapshot, namespace string, asked Image) verdict {
	t.Helper()
	result := engine.Verify(t.Context(), rigged(snapshot.For(verify.Namespace(namespace))), asked.reference())
	return verdict{result.Verdict.Outcome(), result.Exception}
}
