//go:build e2e

package inspect

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/browser"
)

func TestInARealBrowserEachPersonSeesTheirOwnAndNothingOfOthers(t *testing.T) {
	w := installed(t).hire(t)
	secret := w.plant(t)
	signed, unsigned := w.furnish(t)
	w.reported(t, w.irisWeb, signed, unsigned, "shop")
	recorder := browser.Record(t)
	b := browser.Start(t, browser.Options{Recorder: recorder})
	since := w.auditSize(t)
	dev := w.opensBrowser(t, b, "dev", secret, w.iris+"-devs")
	admin := w.opensBrowser(t, b, "admin", secret, w.iris+"-admins")
	clara := w.opensBrowser(t, b, "clara", secret.only("the data"), "platform")
	viewers := []*viewer{dev, admin, clara}

	// A second tab stays open all the time, and nobody reloads it.
	open := &viewer{Tab: b.Tab(t), name: "dev", base: dev.base, origin: dev.origin, canaries: secret}
	open.path(t, "/namespaces/"+w.irisWeb)
	browser.Evaluate[int](open.Tab, "window.same = 1")
	w.runs(t, w.admin, w.irisWeb, "later", w.image(t, w.iris+"/later", w.platform))

	for _, v := range viewers {
		v.walks(t, w, signed, unsigned)
		if v == clara {
			v.path(t, "/namespaces/"+w.zebraWeb)
		} else {
			v.guesses(t, w, secret)
		}
	}
	open.Eventually(`document.getElementById("main").textContent.includes("Pod/later")`)
	require.Equal(t, 1, browser.Evaluate[int](open.Tab, "window.same"), "the view was updated without loading it again")
	open.settled(t, "/namespaces/"+w.irisWeb)

	requireReceived(t, recorder.Exchanges(), append(slices.Clone(viewers), open), secret)
	others := append(secret.only("the name of a Tenant", "the name of a namespace").words(), w.zebra, w.zebraWeb)
	requests := w.auditOf(t, since)
	for _, v := range viewers {
		if allowed := requireReads(t, requests, v.user); v != clara {
			requireOwn(t, allowed, others...)
		}
	}
}

// walks goes from view to view by links, as a person does, and looks at each.
func (v *viewer) walks(t *testing.T, w *teams, signed, unsigned string) {
	t.Helper()
	clara := v.name == "clara"
	v.path(t, "/")
	v.looksAt(t, "cluster", "heading: Cluster\n", "heading: Teams\n", "heading: Findings of check\n", "link: "+w.irisWeb+"\n")
	require.Equal(t, clara, slices.Contains(v.Texts("main a"), w.zebraWeb))

	v.follow(t, "/namespaces/"+w.irisWeb)
	v.looksAt(t, "namespace", "heading: Namespace "+w.irisWeb+"\n", "heading: Failed verification in the last seven days\n", "heading: Which rule decides\n",
		"image: Levels of rules", "heading: Images that run\n")
	require.Contains(t, strings.Join(v.Texts("[aria-labelledby=denied-title] li"), "\n"), "Deployment/shop")
	require.Contains(t, strings.Join(v.Texts("[aria-labelledby=denied-title] li"), "\n"), "To fix, if your build made it:")
	signer := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	require.True(t, slices.ContainsFunc(v.Texts("[aria-labelledby=running-title] tr"), func(row string) bool {
		return strings.Contains(row, "allowed") && strings.Contains(row, "Pod/good") && strings.Contains(row, signed) && signer.MatchString(row)
	}))
	boxes := func(state string) string {
		return strings.Join(v.Texts("svg.picture g.box."+state+" > title"), "\n")
	}
	if clara {
		require.Contains(t, boxes("applies"), "VerificationPolicy own-rules: applies")
		require.Contains(t, boxes("applies"), "ClusterVerifier platform: applies")
		require.Contains(t, boxes("shadowed"), "ClusterVerificationPolicy signed: shadowed by the Tenant")
	} else {
		require.Contains(t, boxes("unknown"), "you cannot list them")
		require.NotRegexp(t, "(?m)^ClusterVerificationPolicy", boxes("applies"))
	}
	require.NotContains(t, strings.Join(v.Texts("[aria-labelledby=denied-title] > p"), " "), "are admitted.", "the stage is deny, or this person cannot know it")
	v.keyboard(t)

	v.follow(t, imagePath(w.irisWeb, signed))
	v.looksAt(t, "image", "heading: Verdict now\n", "heading: What was found\n", "heading: How long it took\n", "heading: Where it runs in this namespace\n",
		"link: "+w.irisWeb+"\n")
	if clara {
		tree := strings.Join(v.Texts("ul.tree"), " ")
		for _, want := range []string{"origin", w.iris + "/good", "valid ClusterVerifier platform", "Signer:"} {
			require.Contains(t, tree, want)
		}
		require.NotEmpty(t, v.Texts("svg.timeline rect"))
	}

	v.Open(v.base + "/")
	v.Fill("#q", w.iris)
	require.Equal(t, http.StatusOK, v.Click("header form button"))
	v.looksAt(t, "search", "heading: Search\n", "link: "+w.irisWeb+"\n", "link: "+unsigned+"\n")

	require.Equal(t, http.StatusOK, v.Click(`header a[href$="/whatif"]`))
	v.Fill("#namespace", w.irisWeb)
	v.Fill("#text", "{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: strict}, spec: {rules: [{images: ['**'], require: [{anyOf: "+
		"[audits]}]}]}}")
	require.Equal(t, http.StatusOK, v.Click("main form button"))
	v.looksAt(t, "whatif", "heading: What if\n", "heading: What would change\n")
	if clara {
		require.Contains(t, strings.Join(v.Texts("[aria-labelledby=answer-title] tr"), "\n"), signed+"alloweddenied")
	}
}

// keyboard goes through a view with the tab key, and finds all that scrolls.
func (v *viewer) keyboard(t *testing.T) {
	t.Helper()
	v.Open(v.Address())
	v.settled(t, "the keyboard")
	var stops []string
	for len(stops) < 200 {
		v.Type("\t")
		at := browser.Evaluate[string](v.Tab, `(() => { const e = document.activeElement; return e === document.body ? "" : e.className + "#" + e.id; })()`)
		if at == "" {
			break
		}
		stops = append(stops, at)
	}
	require.Equal(t, "skip#", stops[0], "the first stop leads past the head of the page")
	require.Contains(t, stops, "#q")
	scrolls := browser.Evaluate[int](v.Tab, `document.querySelectorAll("main .wide").length`)
	require.Positive(t, scrolls)
	require.Len(t, slices.DeleteFunc(slices.Clone(stops), func(s string) bool { return s != "wide#" }), scrolls, "whatever scrolls sideways is reached")
	v.Open(v.Address())
	v.Type("\t\r")
	v.Eventually(`document.activeElement.id === "main"`)
}

// guesses tries what somebody could who is curious about another team.
func (v *viewer) guesses(t *testing.T, w *teams, secret canaries) {
	t.Helper()
	third := secret.only("the name of a namespace").words()[0]
	paths := []string{"/search?q=ebr", "/search?q=canary", "/search?q=" + w.zebraWeb, "/?team=" + w.zebra, "/?page=2", "/nowhere", "/assets/none", "/namespaces/",
		"/namespaces/..%2F" + w.zebraWeb, "/image",
		"/namespaces/" + w.zebra, "/namespaces/" + w.zebraWeb, "/namespaces/" + third, "/namespaces/kube-system"}
	for _, word := range secret.only("an image that runs", "an image of a Deployment").words() {
		paths = append(paths, imagePath(w.zebraWeb, w.Registry.Host()+"/"+w.zebra+"/"+word+":v1"), imagePath(w.irisWeb, w.Registry.Host()+"/"+w.zebra+"/"+word+":v1"))
	}
	for _, path := range paths {
		v.path(t, path)
	}
	for _, namespace := range []string{w.zebraWeb, third} {
		v.Open(v.base + "/whatif?namespace=" + namespace)
		v.Fill("#text", "{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ['**'], require: "+
			"[{anyOf: [audits]}]}]}}")
		v.Click("main form button")
		v.settled(t, "what if of "+namespace)
	}
	// Answers that no view shows.
	for _, request := range []string{`"/"`, `"/open?token=0"`, `"/s/` + strings.Repeat("0", 64) + `/namespaces/` + w.zebraWeb + `"`,
		`"` + strings.TrimPrefix(v.base, v.origin) + `/whatif", {method: "POST", body: "%zz"}`} {
		browser.Evaluate[int](v.Tab, `fetch(`+request+`).then((r) => r.status)`)
	}
	v.path(t, "/namespaces/"+w.irisWeb)
	v.Eventually(`fetch(location.href).then((r) => fetch(location.href, {cache: "no-store", headers: {"If-None-Match": r.headers.get("ETag")}})).then((r) => ` +
		`r.status === 304)`)
	require.Empty(t, v.Complaints())
}

// requireReceived fails if a browser received a word that its person must never see, or asked anybody but
// the page.
func requireReceived(t *testing.T, exchanges []browser.Exchange, viewers []*viewer, secret canaries) {
	t.Helper()
	statuses, seen := map[int]bool{}, ""
	for _, v := range viewers {
		require.Equal(t, []string{v.origin}, v.Asked(), "%s: no page asks another host", v.name)
	}
	for _, e := range exchanges {
		if e.Received == "" { // Chromium itself asks for updates and the time, and is refused
			continue
		}
		i := slices.IndexFunc(viewers, func(v *viewer) bool { return strings.HasPrefix(e.URL, v.origin+"/") })
		require.GreaterOrEqual(t, i, 0, "the browser asked %s", e.URL)
		browser.RequirePlain(t, e)
		named, err := url.QueryUnescape(e.Body)
		if err != nil {
			named = e.Body
		}
		viewers[i].canaries.requireNone(t, fmt.Sprintf("%s: %s %s (%d)", viewers[i].name, e.Method, e.URL, e.Status), e.Received, e.URL+named)
		statuses[e.Status] = true
		if viewers[i].name == "clara" {
			seen += e.Received
		}
	}
	for _, status := range []int{http.StatusOK, http.StatusSeeOther, http.StatusNotModified, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound} {
		require.True(t, statuses[status], "no answer was %d: %v", status, statuses)
	}
	for word, place := range secret.only("an image that runs", "an image of a Deployment", "the name of a Tenant") {
		require.Contains(t, seen, word, "a cluster admin sees %s, so nobody hides it before it is looked for", place)
	}
}
