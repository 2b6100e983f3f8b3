package configdir

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLoadYAML checks that no file crashes the parser, that each document is an
// object, ignored or reported, and that each object has a kind and a name.
func FuzzLoadYAML(f *testing.F) {
	for _, seed := range []string{
		"", garbage, verifier("team-a", "v"), mistyped("team-a", "v"), verifier("a", "v") + "---\n" + garbage + "...\n# end",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\ndata: {k: aGVsbG8=}\n",
		"apiVersion: apps/v1\nkind: Deployment\n", "a: &a [*a]\n", "{\"apiVersion\": \"v1\",\n\t\"kind\": \"List\"}", "? [a]\n: b\n", "<<: [{a: b}]\n",
	} {
		f.Add([]byte(seed))
	}
	d, err := newDecoder(false)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, content []byte) {
		entries := d.file(t.Context(), "x.yaml", content)
		documents, err := split("x.yaml", content)
		if err != nil {
			require.Len(t, entries, 1)
			require.True(t, entries[0].lost())
			return
		}
		if !bytes.Contains(content, []byte("items")) { // a list may be empty
			require.LessOrEqual(t, len(documents), len(entries))
		}
		for _, e := range entries {
			if e.lost() || e.ignored {
				require.Error(t, e.err)
				require.Nil(t, e.object)
				continue
			}
			require.NotEmpty(t, e.source.Kind)
			require.NotEmpty(t, e.source.Name)
			require.True(t, e.err != nil || e.object != nil)
		}
	})
}

// FuzzLists checks that an object in a list is read as it is by itself, and that a list
// within a list never is.
func FuzzLists(f *testing.F) {
	for _, seed := range []string{verifier("team-a", "v"), mistyped("team-a", "v"), garbage, "", "apiVersion: v1\nkind: List\nitems: []\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\ndata: {k: aGVsbG8=}\n", "kind: Store\n", "[a]", "metadata: {name: v, name: w}\n",
		"apiVersion: apps/v1\nkind: Deployment\n", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, uid: u, managedFields: [{fieldsV1: {'f:x': {.: {}}}}]}\n"} {
		f.Add([]byte(seed))
	}
	d, err := newDecoder(false)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, content []byte) {
		documents, err := split("x.yaml", content)
		if err != nil || len(documents) != 1 {
			return
		}
		one, err := documents[0].parse()
		if err != nil {
			return
		}
		alone := d.file(t.Context(), "x.yaml", one.json)
		listed := d.file(t.Context(), "x.yaml", []byte(`{"apiVersion":"v1","kind":"List","items":[`+string(one.json)+`]}`))
		if len(alone) == 0 || slices.ContainsFunc(listed, entry.lost) {
			require.False(t, slices.ContainsFunc(listed, func(e entry) bool { return e.object != nil }))
			return
		}
		require.Len(t, listed, len(alone))
		for i, e := range listed {
			require.Equal(t, alone[i].source, e.source)
			require.Equal(t, alone[i].ignored, e.ignored)
			require.Equal(t, alone[i].object, e.object)
			require.Equal(t, alone[i].err != nil, e.err != nil)
		}
	})
}
