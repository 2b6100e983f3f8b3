package constraint

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func withSpec(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	c := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{spec: "+spec+"}"), &c.Object))
	return c
}

func TestAConstraintHasTheModeOfItsStrictestActionAtAdmission(t *testing.T) {
	for spec, want := range map[string]Mode{
		`{}`:                           Deny,
		`{enforcementAction: deny}`:    Deny,
		`{enforcementAction: warn}`:    Warn,
		`{enforcementAction: dryrun}`:  Dryrun,
		`{enforcementAction: rubbish}`: None,
		`{enforcementAction: scoped}`:  None,
		`{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: audit.gatekeeper.sh}]}, {action: warn, ` +
			`enforcementPoints: [{name: validation.gatekeeper.sh}]}]}`: Warn,
		`{enforcementAction: scoped, scopedEnforcementActions: [{action: dryrun, enforcementPoints: [{name: "*"}]}, {action: deny, enforcementPoints: ` +
			`[{name: "*"}]}]}`: Deny,
	} {
		require.Equal(t, want, ModeOf(withSpec(t, spec)), spec)
	}
}

func TestAConstraintMatchesNamespacesAsGatekeeperDoes(t *testing.T) {
	for match, want := range map[string]bool{
		`{}`:                                                true,
		`{namespaces: [team-b]}`:                            false,
		`{namespaces: [team-b, "team-*"]}`:                  true,
		`{namespaces: ["*-a"]}`:                             true,
		`{namespaces: ["*eam*"]}`:                           true,
		`{excludedNamespaces: [kube-system]}`:               true,
		`{excludedNamespaces: ["team-*"]}`:                  false,
		`{namespaceSelector: {}}`:                           true,
		`{namespaceSelector: {matchLabels: {stage: test}}}`: true,
		`{namespaceSelector: {matchLabels: {stage: live}}}`: false,
		`{namespaceSelector: {matchExpressions: [{key: stage, operator: Exists}]}}`:                             true,
		`{namespaceSelector: {matchExpressions: [{key: stage, operator: Rubbish}]}}`:                            false,
		`{namespaceSelector: {matchLabels: rubbish}}`:                                                           false,
		`{namespaces: [team-a], excludedNamespaces: [team-a], namespaceSelector: {matchLabels: {stage: test}}}`: false,
	} {
		require.Equal(t, want, MatchesNamespace(withSpec(t, "{match: "+match+"}"), "team-a", map[string]string{"stage": "test"}), match)
	}
}

func TestAConstraintThatSelectsSomeObjectsIsNotWhole(t *testing.T) {
	for match, want := range map[string]bool{
		`{}`:                                     true,
		`{labelSelector: {}}`:                    true,
		`{labelSelector: {matchLabels: {a: b}}}`: false,
		`{name: web}`:                            false,
		`{name: "*"}`:                            true,
		`{scope: Cluster}`:                       false,
		`{scope: Namespaced}`:                    true,
		`{source: Generated}`:                    false,
		`{source: Original}`:                     true,
	} {
		require.Equal(t, want, Whole(withSpec(t, "{match: "+match+"}")), match)
	}
}

func TestPodsAreMatchedByKindAndGroup(t *testing.T) {
	for match, want := range map[string]bool{
		`{}`:          true,
		`{kinds: []}`: true,
		`{kinds: [{apiGroups: [""], kinds: [Pod]}]}`:                          true,
		`{kinds: [{apiGroups: ["*"], kinds: ["*"]}]}`:                         true,
		`{kinds: [{kinds: [Pod]}]}`:                                           true,
		`{kinds: [{apiGroups: [apps], kinds: [Pod]}]}`:                        false,
		`{kinds: [{apiGroups: [apps], kinds: [Deployment]}]}`:                 false,
		`{kinds: [{apiGroups: [apps], kinds: [Deployment]}, {kinds: [Pod]}]}`: true,
	} {
		require.Equal(t, want, MatchesPods(withSpec(t, "{match: "+match+"}")), match)
	}
}

func TestANamespaceIsExemptIfEveryConstraintLeavesItOut(t *testing.T) {
	kube, team := map[string]string{"level": "system"}, map[string]string{}
	for name, c := range map[string]struct {
		constraints []string
		of          map[string]string
		want        bool
	}{
		"no constraint":               {nil, team, false},
		"a label of Gatekeeper":       {nil, map[string]string{v1beta1.LabelGatekeeperIgnore: "x"}, true},
		"left out by name":            {[]string{`{match: {excludedNamespaces: [kube-*]}}`}, team, true},
		"left out by one of two":      {[]string{`{match: {excludedNamespaces: [kube-*]}}`, `{enforcementAction: dryrun}`}, team, false},
		"left out by a label":         {[]string{`{match: {namespaceSelector: {matchExpressions: [{key: level, operator: NotIn, values: [system]}]}}}`}, kube, true},
		"another label":               {[]string{`{match: {namespaceSelector: {matchExpressions: [{key: level, operator: NotIn, values: [system]}]}}}`}, team, false},
		"not chosen yet":              {[]string{`{match: {namespaces: [shop]}}`}, team, false},
		"not chosen yet, by a label":  {[]string{`{match: {namespaceSelector: {matchLabels: {level: app}}}}`}, team, false},
		"a constraint for no pods":    {[]string{`{match: {excludedNamespaces: [kube-*], kinds: [{apiGroups: [apps], kinds: [Deployment]}]}}`}, team, false},
		"a selector that is no right": {[]string{`{match: {namespaceSelector: {matchExpressions: [{key: level, operator: Perhaps}]}}}`}, team, false},
	} {
		var constraints []unstructured.Unstructured
		for _, text := range c.constraints {
			constraints = append(constraints, *withSpec(t, text))
		}
		require.Equal(t, c.want, Exempt(constraints, "kube-system", c.of), name)
	}
}

func TestImagesAreExemptFromTheStrictestModeOnly(t *testing.T) {
	for name, c := range map[string]struct {
		constraints []string
		want        []string
	}{
		"no constraint":               {nil, nil},
		"no exempt image":             {[]string{`{}`}, nil},
		"some images":                 {[]string{`{parameters: {exemptImages: [a, "b/*"]}}`}, []string{"a", "b/*"}},
		"another one denies for them": {[]string{`{parameters: {exemptImages: [a]}}`, `{}`}, nil},
		"another one warns for them":  {[]string{`{parameters: {exemptImages: [a]}}`, `{enforcementAction: warn}`}, []string{"a"}},
		"one elsewhere":               {[]string{`{parameters: {exemptImages: [a]}, match: {excludedNamespaces: [shop]}}`, `{}`}, nil},
		"another one is for another kind": {[]string{`{parameters: {exemptImages: [a]}}`, `{match: {kinds: [{apiGroups: [apps], kinds: [Deployment]}]}}`},
			[]string{"a"}},
		"no image is left out by both":      {[]string{`{parameters: {exemptImages: [a]}}`, `{parameters: {exemptImages: [b]}}`}, nil},
		"a path of the other one covers it": {[]string{`{parameters: {exemptImages: ["r/a/*", x]}}`, `{parameters: {exemptImages: ["r/*"]}}`}, []string{"r/a/*"}},
		"another one leaves out fewer ones": {[]string{`{parameters: {exemptImages: [a, b]}}`, `{parameters: {exemptImages: [b]}}`}, []string{"b"}},
	} {
		var constraints []unstructured.Unstructured
		for _, text := range c.constraints {
			constraints = append(constraints, *withSpec(t, text))
		}
		require.Equal(t, c.want, ImagesExemptIn(constraints, "shop", nil), name)
	}
}
