//go:build e2e

package inspect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// looker is a browser of one person with the page of landwaiter ui.
type looker struct {
	client *http.Client
	base   string
	// said is everything that the page answered, by address.
	said map[string]string
}

// opens starts the page of a person, and opens it.
func (p person) opens(t *testing.T) *looker {
	t.Helper()
	address, _ := serves(t, p.landwaiter)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	l := &looker{client: &http.Client{Jar: jar}, said: map[string]string{}}
	opened, err := l.client.Get(address)
	require.NoError(t, err)
	require.NoError(t, opened.Body.Close())
	require.Equal(t, http.StatusOK, opened.StatusCode)
	l.base = strings.TrimSuffix(opened.Request.URL.String(), "/")
	return l
}

func (l *looker) get(ctx context.Context, t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, nil)
	require.NoError(t, err)
	return l.do(t, request)
}

// asksWhatIf sends the form of a what-if as a browser does.
func (l *looker) asksWhatIf(t *testing.T, namespace, text string) string {
	t.Helper()
	form := url.Values{"namespace": {namespace}, "text": {text}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+"/whatif", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return l.do(t, request)
}

func (l *looker) do(t *testing.T, request *http.Request) string {
	t.Helper()
	response, err := l.client.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Less(t, response.StatusCode, 500, string(text))
	l.said[fmt.Sprintf("%s %s (%d)", request.Method, request.URL.RequestURI(), len(l.said))] = string(text)
	return string(text)
}

// finds waits until a view has all of some texts.
func (l *looker) finds(w *teams, t *testing.T, path string, texts ...string) {
	t.Helper()
	w.eventually(t, func(ctx context.Context) error {
		got := l.get(ctx, t, path)
		for _, text := range texts {
			if !strings.Contains(got, text) {
				return fmt.Errorf("%s has no %q: %s", path, text, got)
			}
		}
		return nil
	})
}

func imagePath(namespace, image string) string {
	return "/image?" + url.Values{"namespace": {namespace}, "image": {image}}.Encode()
}

func TestPeopleFindOnThePageWhatTheyNeedAndNothingOfOthers(t *testing.T) {
	w := installed(t).hire(t)
	suite.Apply(t, w.Cluster, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: platform-reports}, roleRef: {apiGroup: "+
		"rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-report-reader}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, "+
		"name: platform}]}")
	denied := suite.Restricted(suite.Pod(w.zebraWeb, secretWord+"-pod", w.image(t, w.zebra+"/stripes")))
	require.ErrorContains(t, w.zebraAdmin.client.Create(t.Context(), denied), "is denied")
	w.runs(t, w.zebraAdmin, w.zebraWeb, secretWord+"-runs", w.image(t, w.zebra+"/signed", w.platform))
	signed, unsigned := w.image(t, w.iris+"/good", w.platform), w.image(t, w.iris+"/bad")
	w.runs(t, w.admin, w.irisWeb, "good", signed)
	w.deploys(t, w.dev, w.irisWeb, "shop", unsigned)
	policy := "{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ['**'], require: " +
		"[{anyOf: [audits]}]}]}}"

	for name, who := range map[string]person{"a developer": w.dev, "a team admin": w.admin} {
		t.Run(name+" finds why a Deployment has no pods, and nothing of another team", func(t *testing.T) {
			page := who.opens(t)
			page.finds(w, t, "/namespaces/"+w.irisWeb, "Deployment/shop", w.iris+"/bad", "To fix, if your build made it:", "Tenant "+w.iris, w.iris+"/good", ">allowed<")
			page.finds(w, t, imagePath(w.irisWeb, unsigned), "What was found", "no signature")
			// The ClusterStore of the registry, and for developers the home namespace, cannot be read: only reports tell the verdict.
			page.finds(w, t, imagePath(w.irisWeb, signed), "signature verified by ClusterVerifier platform", ">undecided<", "you cannot")
			page.finds(w, t, "/", w.irisWeb)
			page.finds(w, t, "/search?q="+w.iris, w.irisWeb)
			page.asksWhatIf(t, w.irisWeb, "{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: lax}, spec: {defaultAction: Allow}}")
			for _, path := range []string{"/search?q=ebr", "/search?q=stripes", "/?team=", "/?page=2", "/whatif", "/assets/page.js", "/nowhere"} {
				page.get(t.Context(), t, path)
			}
			for what, text := range page.said {
				require.NotContains(t, text, secretWord, what)
			}
			// What the person names itself, the page repeats, and no more.
			page.said = map[string]string{}
			page.finds(w, t, "/namespaces/"+w.zebraWeb, "you cannot")
			page.get(t.Context(), t, imagePath(w.zebraWeb, "r.example.com/x:1"))
			page.asksWhatIf(t, w.zebraWeb, policy)
			for what, text := range page.said {
				require.NotContains(t, strings.ReplaceAll(text, w.zebraWeb, ""), secretWord, what)
			}
		})
	}
	t.Run("a cluster admin sees every team, and what a rule would break", func(t *testing.T) {
		page := w.clara.opens(t)
		page.finds(w, t, "/", w.iris, w.zebra, w.irisWeb, w.zebraWeb, "Findings of check")
		page.finds(w, t, "/search?q="+secretWord, w.zebraWeb, w.zebra+"/signed")
		page.finds(w, t, imagePath(w.irisWeb, signed), "ClusterVerifier platform", ">valid<", "Signer:", "to check")
		text := page.asksWhatIf(t, w.irisWeb, policy)
		require.Contains(t, text, "1 newly denied", text)
		require.Contains(t, text, w.iris+"/good")
	})
}
