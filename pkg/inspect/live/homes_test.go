package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

func TestTheRulesOfHomeHoldInTheOtherNamespacesOfItsTenant(t *testing.T) {
	tenant := func(name, prefix string, namespaces ...string) *v1beta1.Tenant {
		made := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.HomeNamespace, made.Spec.NamespacePrefix, made.Spec.Namespaces = home, prefix, namespaces
		return made
	}
	taken := tenant("aaa", "", "taken")
	taken.Spec.HomeNamespace = "other"
	dev := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x-dev", UID: "3"}}
	for name, c := range map[string]struct {
		namespace verify.Namespace
		objects   []client.Object
		change    *v1beta1.Tenant
		refused   []refusal
		want      []verify.Namespace
		rights    int
	}{
		"no Tenant":           {namespace: home},
		"those that it lists": {namespace: home, objects: []client.Object{tenant("t", "", team, home)}, want: []verify.Namespace{team}},
		"not those of another Tenant": {namespace: home, objects: []client.Object{tenant("t", "", team, "taken"), taken},
			want: []verify.Namespace{team}},
		"not for a namespace that is no home namespace": {namespace: team, objects: []client.Object{tenant("t", "", team, "b")}},
		"those of its prefix": {namespace: home, objects: []client.Object{tenant("t", "x-", team), dev},
			want: []verify.Namespace{team, "x-dev"}},
		"those of its prefix are not known": {namespace: home, objects: []client.Object{tenant("t", "x-", team), dev},
			refused: []refusal{{"Namespace", ""}}, want: []verify.Namespace{team}, rights: 1},
		"those that the change adds": {namespace: home, objects: []client.Object{tenant("t", "", team)}, change: tenant("t", "", "b"),
			want: []verify.Namespace{"b", team}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lab{scheme: reader(t).client.Scheme(), schemas: schema.Embedded()}
			w := world{}
			for _, o := range c.objects {
				w.add(o)
			}
			change := Change{}
			if c.change != nil {
				require.NoError(t, change.Objects.Add(c.change))
			}
			p := l.person(w, c.refused...)
			before, after, err := p.Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{c.namespace}}, change)
			require.NoError(t, err)
			found, rights, err := p.Governed(t.Context(), c.namespace, before, after)
			require.NoError(t, err)
			require.Equal(t, c.want, found)
			require.Len(t, rights, c.rights)
		})
	}
}
