package onboard

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestSettingsAreFieldsOfATenant(t *testing.T) {
	for about, c := range map[string]struct {
		settings []string
		want     string // YAML
	}{
		"text":                     {[]string{"namespacePrefix=iris-green-"}, "{namespacePrefix: iris-green-}"},
		"a path":                   {[]string{"reconciler.source.url=https://example.com/a?b=c"}, "{reconciler: {source: {url: 'https://example.com/a?b=c'}}}"},
		"a list, entry by entry":   {[]string{"namespaces=a", "namespaces=b", "namespaces=a"}, "{namespaces: [a, b]}"},
		"a list at once":           {[]string{"namespaces=[a, b]", "namespaces=c"}, "{namespaces: [a, b, c]}"},
		"no comma splits an entry": {[]string{"access.admins=a,b"}, "{access: {admins: [{kind: Group, name: 'a,b'}]}}"},
		"groups, and a user": {[]string{"access.developers=[devs, {kind: User, name: ann}]"},
			"{access: {developers: [{kind: Group, name: devs}, {kind: User, name: ann}]}}"},
		"a map": {[]string{"isolation.quota={pods: 50, requests.cpu: 500m}"}, "{isolation: {quota: {pods: '50', requests.cpu: 500m}}}"},
		"one key of a map": {[]string{"isolation.quota.requests.cpu=2", "isolation.quota.pods=50"},
			"{isolation: {quota: {pods: '50', requests.cpu: '2'}}}"},
		"a map in a line": {[]string{"isolation.quota=pods: 50"}, "{isolation: {quota: {pods: '50'}}}"},
		"true":            {[]string{"adopt=true"}, "{adopt: true}"},
		"text that looks like a number": {[]string{"reconciler.variables.VERSION=1.10", "reconciler.variables.ON=true", "reconciler.variables.NONE=null"},
			"{reconciler: {variables: {VERSION: '1.10', 'ON': 'true', NONE: 'null'}}}"},
		"text that is no YAML": {[]string{"reconciler.variables.A=#fff", "reconciler.variables.B=x: y: z", "reconciler.variables.C=a #b",
			"reconciler.variables.D=k: v"}, "{reconciler: {variables: {A: '#fff', B: 'x: y: z', C: 'a #b', D: 'k: v'}}}"},
		"text in quotes": {[]string{`reconciler.variables.A="{x}"`, `reconciler.variables.B=' y'`, `reconciler.variables.C=say "x"`},
			`{reconciler: {variables: {A: '{x}', B: ' y', C: 'say "x"'}}}`},
		"a part": {[]string{"reconciler={source: {url: https://example.com/a, secretRef: {name: git}}, createNamespaces: true}"},
			"{reconciler: {createNamespaces: true, source: {url: 'https://example.com/a', secretRef: {name: git}}}}"},
		"a part with defaults alone": {[]string{"reconciler={}"}, "{reconciler: {}}"},
		"the same twice":             {[]string{"homeNamespace=a", "homeNamespace=a"}, "{homeNamespace: a}"},
	} {
		t.Run(about, func(t *testing.T) {
			var got, want v1beta1.TenantSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(c.want), &want))
			require.NoError(t, Set(&got, settings(c.settings...)))
			require.Equal(t, encoded(t, want), encoded(t, got))
		})
	}
}

func TestSettingsAddToWhatIsThere(t *testing.T) {
	spec := v1beta1.TenantSpec{HomeNamespace: "a", Namespaces: []string{"b"}, Adopt: true,
		Reconciler: &v1beta1.TenantReconciler{Path: "./x", Variables: map[string]v1beta1.Variable{"A": "1", "B": "2"}},
		Isolation:  v1beta1.TenantIsolation{Network: "Open", Quota: corev1.ResourceList{"pods": resource.MustParse("5")}}}
	require.NoError(t,
		Set(&spec, settings("namespaces=[c, b]", "adopt=false", "reconciler.variables.B=3", "isolation.quota.pods=6", "isolation.quota.services=1")))
	require.Equal(t, v1beta1.TenantSpec{HomeNamespace: "a", Namespaces: []string{"b", "c"},
		Reconciler: &v1beta1.TenantReconciler{Path: "./x", Variables: map[string]v1beta1.Variable{"A": "1", "B": "3"}},
		Isolation:  v1beta1.TenantIsolation{Network: "Open", Quota: corev1.ResourceList{"pods": resource.MustParse("6"), "services": resource.MustParse("1")}}}, spec)
}

func TestSettingsThatSayNothingCertainAreRefused(t *testing.T) {
	for setting, message := range map[string]string{
		"adopt":                        `--set "adopt": give FIELD=VALUE`,
		"=x":                           `--set "=x": give FIELD=VALUE`,
		"reconciler..path=x":           "--set reconciler..path: a name is missing between two dots",
		"namespace=a":                  "--set namespace: there is no such field; did you mean namespaces?",
		"reconciler.sorce.url=x":       "--set reconciler.sorce: there is no such field; did you mean reconciler.source?",
		"reconciler={sorce: {url: x}}": "--set reconciler.sorce: there is no such field; did you mean reconciler.source?",
		"access.everybody=x":           "--set access.everybody: there is no such field; there are admins, developers, viewers",
		"homeNamespace.x=y":            "--set homeNamespace.x: homeNamespace has no fields",
		"namespaces.x=y":               "--set namespaces.x: namespaces has no fields",
		"isolation.quota.pods.x=y":     `--set isolation.quota.pods.x: "y" is not an amount such as 50, 500m or 2Gi`,
		"access.admins=":               "--set access.admins: the value is empty: give one, or leave the field out",
		"access.admins= ":              "--set access.admins: the value is empty",
		`access.admins=""`:             "--set access.admins: the value is empty",
		"access.admins=[]":             "--set access.admins: the value is empty",
		"access.admins=[a, ]x":         "", // not YAML, so it is the name of a group
		"access.admins=[a, '']":        "--set access.admins: the value is empty",
		"access.admins=[a, ~]":         "--set access.admins: the value is empty",
		"access={}":                    "--set access: the value is empty",
		"access={admins: }":            "--set access.admins: the value is empty",
		"isolation.quota={'': 5}":      "--set isolation.quota: a key is empty or no text",
		"isolation.quota.pods=many":    `--set isolation.quota.pods: "many" is not an amount such as 50, 500m or 2Gi`,
		"isolation.quota=50":           `--set isolation.quota: "50" is not a map, such as {NAME: VALUE}`,
		"access=admins":                `--set access: "admins" is not a map, such as {NAME: VALUE}; it has admins, developers, viewers`,
		"access.admins=[[a]]":          `--set access.admins: "" is not a map`,
		"adopt=yes":                    `--set adopt: "yes" is not true or false`,
		"adopt={a: b}":                 `--set adopt: "{a: b}" is not true or false`,
		"homeNamespace=[a, b]":         `--set homeNamespace: "[a, b]" is not text: put it into quotes`,
		"namespaces={a: b}":            `--set namespaces: "{a: b}" is not text`,
		"namespaces=null":              "--set namespaces: the value is empty",
		"namespaces=[&a x, *a]":        "--set namespaces: write the value out, without an alias of YAML",
	} {
		t.Run(setting, func(t *testing.T) {
			err := Set(&v1beta1.TenantSpec{}, settings(setting))
			if message == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, message)
		})
	}
	require.ErrorContains(t, Set(&v1beta1.TenantSpec{}, settings("namespaces="+strings.Repeat("x", maxSettings))), "more than 65536 bytes: use a file")
	require.EqualError(t, Set(&v1beta1.TenantSpec{}, settings("homeNamespace=a", "homeNamespace=b")), "--set homeNamespace: it is given twice: a and b")
	require.EqualError(t, Set(&v1beta1.TenantSpec{}, settings("isolation.quota={pods: 5}", "isolation.quota.pods=6")),
		"--set isolation.quota.pods: it is given twice: 5 and 6")
}

// Whatever is given, Set returns, and what it accepts is a Tenant that can be written and read again.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"namespaces=[a, b]\naccess.admins=x", "isolation.quota={pods: 5}\nisolation.quota.requests.cpu=1",
		"reconciler={source: {url: x}}",
		"adopt=true", "reconciler.variables.A=#", "access.viewers={kind: User, name: a}", "a=&x [*x]", "isolation.quota=? [a]\n: b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var spec, again v1beta1.TenantSpec
		if Set(&spec, settings(strings.Split(text, "\n")...)) != nil {
			return
		}
		made := encoded(t, spec)
		require.NoError(t, json.Unmarshal([]byte(made), &again))
		require.JSONEq(t, made, encoded(t, again))
	})
}

// settings are those of a command line.
func settings(values ...string) Settings { return Settings{Values: values, Near: policy.Nearest} }

func encoded(t *testing.T, spec v1beta1.TenantSpec) string {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	return string(text)
}
