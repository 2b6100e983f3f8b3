package resolve_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// irisWorld has a Tenant with rules in its home namespace, and a namespace of nobody, as a person reads them.
func irisWorld(t *testing.T) resource.Objects {
	t.Helper()
	o := written.Objects(t, written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"), written.Namespace("iris-web", "2"),
		written.Namespace("rose", "3"),
		written.Object("VerificationPolicy", "iris", "own", "defaultAction: Allow"),
		written.Object("ClusterVerificationPolicy", "", "cluster", "defaultAction: Deny"))
	o.Person = true
	return o
}

func TestWhatAPersonCannotReadMakesANamespaceUndecidedWhereItMayDecide(t *testing.T) {
	for name, c := range map[string]struct {
		source    policy.ObjectRef
		undecided []verify.Namespace
	}{
		"policies of the cluster":        {policy.ObjectRef{Kind: v1beta1.KindClusterVerificationPolicy}, []verify.Namespace{"iris", "iris-web", "rose"}},
		"Verifiers of the cluster":       {policy.ObjectRef{Kind: v1beta1.KindClusterVerifier}, []verify.Namespace{"iris", "iris-web", "rose"}},
		"trust stores of the cluster":    {policy.ObjectRef{Kind: v1beta1.KindClusterTrustStore}, []verify.Namespace{"iris", "iris-web", "rose"}},
		"Stores of the cluster":          {policy.ObjectRef{Kind: v1beta1.KindClusterStore}, []verify.Namespace{"iris", "iris-web", "rose"}},
		"policies of the home namespace": {policy.ObjectRef{Kind: v1beta1.KindVerificationPolicy, Namespace: "iris"}, []verify.Namespace{"iris", "iris-web"}},
		"Verifiers of another team":      {policy.ObjectRef{Kind: v1beta1.KindVerifier, Namespace: "rose"}, []verify.Namespace{"rose"}},
		"the home namespace":             {policy.ObjectRef{Kind: resource.KindNamespace, Name: "iris"}, []verify.Namespace{"iris", "iris-web"}},
		"the namespace itself":           {policy.ObjectRef{Kind: resource.KindNamespace, Name: "iris-web"}, nil},
		"exceptions of the cluster":      {policy.ObjectRef{Kind: v1beta1.KindClusterException}, nil},
		"exceptions of the namespace":    {policy.ObjectRef{Kind: v1beta1.KindException, Namespace: "iris-web"}, nil},
		"quotas":                         {policy.ObjectRef{Kind: v1beta1.KindClusterQuota}, nil},
		"Tenants":                        {policy.ObjectRef{Kind: v1beta1.KindTenant}, []verify.Namespace{"iris", "iris-web", "rose"}},
	} {
		o := irisWorld(t)
		o.Unreadable = []resource.Unreadable{{Source: c.source, Why: "you cannot"}}
		s, _ := written.Compiled(o)
		var undecided []verify.Namespace
		for _, namespace := range []verify.Namespace{"iris", "iris-web", "rose"} {
			config, err := s.Config(namespace)
			require.Equal(t, err == nil, config != nil)
			require.Equal(t, err != nil, len(s.Unreadable(namespace)) > 0)
			if err != nil {
				undecided = append(undecided, namespace)
				require.Equal(t, policy.Undecided, verify.Unanswered(namespace, parsed(t, "r.example.com/app"), err).Verdict.Outcome())
			}
		}
		require.Equal(t, c.undecided, undecided, name)
	}
}

// Whoever cannot list Tenants can read the one that the namespace's label names.
func TestATeamsOwnTenantSufficesIfNoOtherCanHaveTheNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		web, home string // the Tenants that the labels name
		spec      string
		active    bool // by the Tenant's status
		known     bool
	}{
		"a listed namespace":                      {"iris", "iris", written.Iris, false, true},
		"the label is missing":                    {"", "iris", written.Iris, false, false},
		"another Tenant may have the home":        {"iris", "", written.Iris, false, false},
		"a prefix, which a list of another beats": {"iris", "iris", "homeNamespace: iris\nnamespacePrefix: iris-", false, false},
		"a prefix, and the status says so":        {"iris", "iris", "homeNamespace: iris\nnamespacePrefix: iris-", true, true},
	} {
		o := irisWorld(t)
		o.Resources = o.Resources[1:]
		tenant := written.Objects(t, written.Object("Tenant", "", "iris", c.spec)).Resources[0].(*v1beta1.Tenant)
		if c.active {
			tenant.Status.Namespaces = []v1beta1.TenantNamespace{{Name: "iris-web", State: v1beta1.NamespaceActive}}
		}
		o.Resources = append(o.Resources, tenant)
		for i := range o.Namespaces {
			if label := map[string]string{"iris": c.home, "iris-web": c.web}[o.Namespaces[i].Name]; label != "" {
				o.Namespaces[i].Labels = map[string]string{v1beta1.LabelTenant: label}
			}
		}
		o.Unreadable = []resource.Unreadable{{Source: policy.ObjectRef{Kind: v1beta1.KindTenant}, Why: "you cannot"}}
		s, _ := written.Compiled(o)
		require.Equal(t, c.known, len(s.Unreadable("iris-web")) == 0, name)
		require.NotEmpty(t, s.Unreadable("rose"), "a Tenant that this person cannot read may have it")
	}
}

func TestContentThatAPersonCannotReadProvesNothingAndBreaksNothing(t *testing.T) {
	const (
		verifier = "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}"
		keys     = "type: PublicKeys\nsource: {secretKeyRef: {name: keys, key: k}}"
	)
	for name, c := range map[string]struct {
		policy string
		known  bool
	}{
		"a requirement of the Verifier": {"rules: [{images: ['**'], require: [{anyOf: [release]}]}]", true},
		"an expression":                 {"rules: [{images: ['**'], require: [{expression: 'size(findings) == 0'}]}]", false},
	} {
		o := written.Objects(t, written.Namespace("team", "1"), written.Object("TrustStore", "team", "keys", keys),
			written.Object("Verifier", "team", "release", verifier),
			written.Object("VerificationPolicy", "team", "own", c.policy),
			written.Object("Store", "team", "login", "registries: [r.example.com]\nimagePullSecrets: [{name: pull}]"))
		o.Person = true
		for _, secret := range []string{"keys", "pull"} {
			o.Unreadable = append(o.Unreadable,
				resource.Unreadable{Source: policy.ObjectRef{Kind: resource.KindSecret, Namespace: "team", Name: secret}, Why: "you cannot get " + secret})
		}
		s, problems := written.Compiled(o)
		for _, p := range problems {
			require.Equal(t, policy.ReasonUnreadable, p.Reason, "%s: %s", name, p.Message)
		}
		require.Len(t, problems, 3, name)
		require.Equal(t, c.known, len(s.Unreadable("team")) == 0, name)
		made := s.For("team").Tiers[0].Verifiers[0]
		require.NoError(t, made.Broken, "a broken Verifier would deny")
		require.True(t, made.Checker.Accepts(verify.Signature{}))
		finding := verify.Found(made.Checker.Check(t.Context(), verify.Subject{}, verify.Signature{}, nil, time.Time{}))
		require.True(t, finding.Unknown)
		require.Equal(t, policy.ReasonUnreadable, finding.Reason)
		require.Contains(t, finding.Message, "you cannot get keys")
	}
}

func TestAnExceptionIsListedIfItsDelegationCannotBeRead(t *testing.T) {
	until := born.Add(time.Hour).UTC().Format(time.RFC3339)
	for name, unread := range map[string]bool{"the delegation cannot be read": true, "there is none": false} {
		o := irisWorld(t)
		o.Resources = append(o.Resources,
			written.Objects(t, written.Object("Exception", "iris", "importer", "images: [r.example.com/app]\nreason: x\nuntil: "+until)).Resources...)
		o = aged(o)
		if unread {
			o.Unreadable = []resource.Unreadable{{Source: policy.ObjectRef{Kind: v1beta1.KindClusterException}, Why: "you cannot"}}
		}
		s := limited(o, resource.ExceptionLimits{Max: 24 * time.Hour})
		for _, namespace := range []verify.Namespace{"iris", "iris-web", "rose"} {
			listed := false
			for _, c := range s.Explain(namespace) {
				if c.Kind == v1beta1.KindException {
					listed = true
					require.Equal(t, []policy.ObjectRef{{Kind: v1beta1.KindException, Namespace: "iris", Name: "importer"}}, c.Applied)
					require.Contains(t, c.Why, "which you cannot read")
				}
			}
			require.Equal(t, unread && namespace != "rose", listed, "%s: %s", name, namespace)
			require.Empty(t, s.For(namespace).Exceptions)
		}
	}
}

func parsed(t *testing.T, name string) image.Reference {
	t.Helper()
	ref, err := image.Parse(name)
	require.NoError(t, err)
	return ref
}
