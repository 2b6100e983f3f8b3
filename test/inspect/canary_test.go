//go:build e2e

package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// canaries are words that nothing but one object of another team has, with where each is: whoever finds
// one knows what leaks.
type canaries map[string]string

// of returns a word for one place.
func (c canaries) of(place string) string {
	word := suite.Fresh("canary")
	c[word] = place
	return word
}

// only are the canaries of places that begin with one of these.
func (c canaries) only(places ...string) canaries {
	found := canaries{}
	for word, place := range c {
		if slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(place, p) }) {
			found[word] = place
		}
	}
	return found
}

// words are the canaries themselves, in order.
func (c canaries) words() []string { return slices.Sorted(maps.Keys(c)) }

// requireNone fails if a text has a canary, also as Secrets encode it, that the person did not name.
func (c canaries) requireNone(t *testing.T, where, text, named string) {
	t.Helper()
	if plain, err := url.QueryUnescape(named); err == nil {
		named += plain
	}
	for word, place := range c {
		for _, form := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
			if at := strings.Index(text, form); at >= 0 && !strings.Contains(named, form) {
				require.Fail(t, "a canary got out", "%s shows %s of another team: …%s…", where, place, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
}

// plant gives the other team, and a third one, objects of all kinds, each with its canary.
func (w *teams) plant(t *testing.T) canaries {
	t.Helper()
	c := canaries{secretWord: "the name"}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	third, thirdWeb := c.of("the name of a Tenant"), c.of("the name of a namespace")
	caller(t, w.Kubeconfig()).landwaiter.Must(t, "tenant", "add", "--wait", third, "--set", "namespaces="+thirdWeb, "--set",
		"access.admins="+c.of("a group in a Tenant"))
	for namespace, more := range map[string]string{w.zebraWeb: "",
		thirdWeb: fmt.Sprintf(",%q:%q,%q:%q", v1beta1.AnnotationBreakGlassUntil, until, v1beta1.AnnotationBreakGlassReason, c.of("the reason of break-glass"))} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"note":%q},"annotations":{"note":%q%s}}}`, c.of("a label of a namespace"),
			c.of("an annotation of a namespace"), more)
		require.NoError(t, w.Client.Patch(t.Context(), suite.Namespace(namespace), client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	for _, namespace := range []string{w.zebra, w.zebraWeb, thirdWeb} {
		in := func(what string) string { return c.of(what + " in " + namespace) }
		suite.Apply(t, w.Cluster, fmt.Sprintf(`
{apiVersion: v1, kind: Secret, metadata: {name: %[2]s, namespace: %[1]s}, stringData: {key: %[3]s}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %[4]s, namespace: %[1]s}, data: {key: %[5]s}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[6]s, namespace: %[1]s}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: %[7]s, namespace: %[1]s}, spec: {type: PublicKeys, source: {secretKeyRef: {name: %[2]s, key: key}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Store, metadata: {name: %[8]s, namespace: %[1]s}, spec: {registries: [%[9]s.example.com]}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Exception, metadata: {name: %[10]s, namespace: %[1]s}, spec: {until: %[11]q, reason: %[12]s, images: ["%[13]s.example.com/x"]}}
---
{apiVersion: v1, kind: Event, metadata: {name: %[14]s, namespace: %[1]s}, type: Warning, reason: ImageDenied, message: %[15]s, involvedObject: {kind: Pod, name: %[16]s, namespace: %[1]s}}
`, namespace, in("the name of a Secret"), in("the data of a Secret"), in("the name of a ConfigMap"), in("the data of a ConfigMap"),
			in("the name of a ServiceAccount"),
			in("the name of a TrustStore"), in("the name of a Store"), in("a registry of a Store"),
			in("the name of an Exception"), until, in("the reason of an Exception"), in("an image of an Exception"),
			in("the name of an Event"), in("the message of an Event"), in("the object of an Event")))
	}
	// The images of the second team are signed for the Verifiers of the cluster.
	suite.Apply(t, w.Cluster, fmt.Sprintf(`
{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: %[2]s, namespace: %[1]s}, spec: {images: ["%[3]s.example.com/**"], type: Cosign, cosign: {keys: {trustStoreRefs: [{name: %[4]s}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: %[5]s, namespace: %[1]s}, spec: {rules: [{images: ["%[6]s.example.com/**"], require: [{anyOf: [%[2]s]}]}]}}
`, thirdWeb, c.of("the name of a Verifier"), c.of("a pattern of a Verifier"), c.of("the TrustStore of a Verifier"), c.of("the name of a policy"),
		c.of("a pattern of a policy")))
	runs, denied, shop := c.of("an image that runs"), c.of("an image of a pod that was denied"), c.of("an image of a Deployment")
	w.plantPods(t, c, runs, denied, shop)
	w.reported(t, w.zebraWeb, runs, denied, shop)
	return c
}

// plantPods has the other team run one image, and be denied two.
func (w *teams) plantPods(t *testing.T, c canaries, runs, denied, shop string) {
	t.Helper()
	w.runs(t, w.zebraAdmin, w.zebraWeb, c.of("the name of a pod"), w.image(t, w.zebra+"/"+runs, w.platform))
	_ = w.zebraAdmin.client.Create(t.Context(), suite.Restricted(suite.Pod(w.zebraWeb, c.of("the name of a pod that was denied"), w.image(t, w.zebra+"/"+denied))))
	w.deploys(t, w.zebraAdmin, w.zebraWeb, c.of("the name of a Deployment"), w.image(t, w.zebra+"/"+shop))
}

// reported waits until reports of a namespace name images.
func (w *teams) reported(t *testing.T, namespace string, images ...string) {
	t.Helper()
	w.eventually(t, func(ctx context.Context) error {
		reports := &unstructured.UnstructuredList{Object: map[string]any{}}
		reports.SetAPIVersion(v1beta1.ReportGroup + "/" + v1beta1.ReportVersion)
		reports.SetKind(v1beta1.ReportKind + "List")
		if err := w.Client.List(ctx, reports, client.InNamespace(namespace)); err != nil {
			return err
		}
		text, err := json.Marshal(reports.Items)
		for _, image := range images {
			if !strings.Contains(string(text), image) {
				return fmt.Errorf("no report names %s: %w %s", image, err, text)
			}
		}
		return err
	})
}
