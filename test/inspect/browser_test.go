//go:build e2e

package inspect

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/browser"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// looks is the folder of screenshots, which Git ignores.
var looks = filepath.Join(suite.Root, "bin", "looks")

// viewer is a person who looks at the page in Chromium.
type viewer struct {
	*browser.Tab
	name string // in the names of screenshots
	user string
	// base is the address of the page, with the path of the session; origin is without.
	base, origin string
	canaries     canaries // that this person must never see
}

// opensBrowser starts the page of landwaiter ui, impersonating a user who makes no other requests, and
// opens it in a tab.
func (w *teams) opensBrowser(t *testing.T, b *browser.Browser, name string, secret canaries, groups ...string) *viewer {
	t.Helper()
	v := &viewer{name: name, user: "page-" + w.fresh(name), Tab: b.Tab(t), canaries: secret}
	args := []string{"--as=" + v.user, "--as-group=system:authenticated", "--namespace=" + w.irisWeb}
	for _, g := range groups {
		args = append(args, "--as-group="+g)
	}
	address, _ := serves(t, caller(t, w.Kubeconfig()).landwaiter, args...)
	require.Equal(t, http.StatusOK, v.Open(address))
	at, err := url.Parse(v.Address())
	require.NoError(t, err)
	v.base = strings.TrimSuffix(at.String(), "/")
	v.origin = at.Scheme + "://" + at.Host
	return v
}

// path opens a view by its path, waits until all is read, and returns what a screen reader reads.
func (v *viewer) path(t *testing.T, path string) string {
	t.Helper()
	require.Less(t, v.Open(v.base+path), 500, path)
	return v.settled(t, path)
}

// settled waits until a view has read everything. Named is what the person said to get there.
func (v *viewer) settled(t *testing.T, named string) string {
	t.Helper()
	v.Eventually(`!!document.getElementById("main") && !document.querySelector("[data-pending]")`)
	tree := v.Tree()
	v.RequireTame(named)
	v.canaries.requireNone(t, v.name+": "+named, v.Document()+tree, named+v.Address())
	require.Empty(t, v.Complaints(), named)
	return tree
}

// looksAt is [viewer.settled], and looks at the view in all widths and schemes.
func (v *viewer) looksAt(t *testing.T, view string, wants ...string) {
	t.Helper()
	tree := v.settled(t, view)
	for _, want := range wants {
		require.Contains(t, tree, want, "%s: %s", v.name, view)
	}
	v.Look(looks, v.name+"-"+view)
	v.Resize(1280)
}

// follow clicks on the link to a path.
func (v *viewer) follow(t *testing.T, path string) {
	t.Helper()
	require.Equal(t, http.StatusOK, v.Click(fmt.Sprintf(`main a[href=%q]`, strings.TrimPrefix(v.base, v.origin)+path)))
}

// furnish gives the first team what its people look at: an image that runs, one that is denied, a policy
// that shadows that of the cluster, and texts that are hostile.
func (w *teams) furnish(t *testing.T) (signed, unsigned string) {
	t.Helper()
	suite.Apply(t, w.Cluster, fmt.Sprintf(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: platform-reports}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-report-reader}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: platform}]}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: own-rules, namespace: %[1]s}, spec: {rules: [{images: ["**"], require: [{anyOf: [platform]}]}]}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Exception, metadata: {name: hostile, namespace: %[1]s}, spec: {until: %[2]q, reason: %[3]q, images: ["r.example.com/old"]}}
---
{apiVersion: v1, kind: Event, metadata: {name: hostile, namespace: %[4]s}, type: Warning, reason: %[5]s, message: %[6]q, involvedObject: {kind: Pod, name: bad, namespace: %[4]s}}
`, w.iris, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), markup, w.irisWeb, v1beta1.EventImageDenied, strings.Repeat(hostile, 100<<10/len(hostile))))
	signed, unsigned = w.image(t, w.iris+"/good", w.platform), w.image(t, w.iris+"/bad")
	w.runs(t, w.admin, w.irisWeb, "good", signed)
	w.deploys(t, w.dev, w.irisWeb, "shop", unsigned)
	w.deploys(t, w.dev, w.irisWeb, "hostile", hostile)
	w.deploys(t, w.dev, w.irisWeb, "long", "r.example.com/"+strings.Repeat(hostile, 100<<10/len(hostile)))
	return signed, unsigned
}

// markup is what an Exception may have as its reason: the API server refuses characters that nobody sees.
const markup = `"'><script>window.hostile=1</script><img src=x onerror=window.hostile=1>`

// hostile is a text that must stay a text. The API server takes it as an image.
const hostile = markup + "\u202egnp\u2066\u200b\x1b[31m"
