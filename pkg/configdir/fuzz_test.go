package configdir

import (
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
	d, err := newDecoder()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, content []byte) {
		r := d.file("x.yaml", content)
		documents, err := split("x.yaml", content)
		if err != nil {
			require.Len(t, r.unidentified, 1)
			return
		}
		require.Len(t, documents, len(r.entries)+len(r.ignored)+len(r.unidentified))
		for _, e := range r.entries {
			require.NotEmpty(t, e.source.Kind)
			require.NotEmpty(t, e.source.Name)
			require.Equal(t, e.err != nil, e.object == nil)
		}
	})
}
