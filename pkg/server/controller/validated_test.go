package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// What a refused resource names is neither watched nor fetched: the schema may forbid it.
func TestNothingIsReadForAResourceThatTheSchemaRefuses(t *testing.T) {
	store := keyStore("team-a", "s")
	store.UID, store.Spec.Source.Inline = "1", "a key, too"
	b := newBench(t, interceptor.Funcs{}, team("team-a"), store)
	o, err := b.reader.level(t.Context(), "team-a")
	require.NoError(t, err)
	require.Len(t, b.secrets.references(o)["team-a"], 1)
	b.schemas.checkLevel(t.Context(), "team-a", o.Resources)
	require.Error(t, resource.Missing(o.Resources[0]))
	require.Empty(t, b.secrets.references(o)["team-a"])
	require.Equal(t, resource.Size(store), resource.Size(o.Resources[0]), "it takes as much of its namespace's share as before")
}

func TestASpecIsValidatedOnceForEachGeneration(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), crowded("team-a"))
	validate := func() string {
		o, err := b.reader.level(t.Context(), "team-a")
		require.NoError(t, err)
		b.schemas.checkLevel(t.Context(), "team-a", o.Resources)
		if err := resource.Missing(o.Resources[0]); err != nil {
			return err.Error()
		}
		return ""
	}
	require.Contains(t, validate(), "at most 64 items")
	for of := range b.schemas.refusals["team-a"] {
		b.schemas.refusals["team-a"][of] = nil
	}
	require.Empty(t, validate(), "it is remembered")
	changed := crowded("team-a")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
	changed.Generation++
	require.NoError(t, b.api.Update(t.Context(), changed))
	require.Contains(t, validate(), "at most 64 items")
	require.NoError(t, b.api.Delete(t.Context(), changed))
	o, err := b.reader.level(t.Context(), "team-a")
	require.NoError(t, err)
	b.schemas.checkLevel(t.Context(), "team-a", o.Resources)
	require.Empty(t, b.schemas.refusals, "what is gone is forgotten")
}

// A spec past its limit is dropped when it comes, and is broken for that reason.
func TestASpecThatIsNotKeptIsNotValidated(t *testing.T) {
	p := crowded("team-a")
	for range 200 {
		p.Spec.Rules = append(p.Spec.Rules, v1beta1.PolicyRule{Images: []string{strings.Repeat("x", 512)}, Action: v1beta1.RuleActionAllow})
	}
	require.NoError(t, resource.Keep(p))
	o := resource.Objects{Resources: []v1beta1.Object{p}}
	newValidated(schema.Embedded()).check(t.Context(), &o)
	require.ErrorContains(t, resource.Missing(o.Resources[0]), "split it")
}
