//go:build nightly && linux

package node_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// spelling is a string in the field image of a container, and how it is pulled.
type spelling struct {
	text string
	pull corev1.PullPolicy
}

// What a kubelet starts is the image that the product judged, or the product refuses the string. The node has an
// image of another team, which nobody of this team may run.
func TestAKubeletStartsWhatTheProductJudged(t *testing.T) {
	m := theMachine(t)
	known := map[string]string{} // the digest of an image's manifest or configuration to its name
	made := func(called string) (v1.Image, string, string) {
		img, err := m.Image(called)
		require.NoError(t, err)
		id, err := img.ConfigName()
		require.NoError(t, err)
		digest, err := img.Digest()
		require.NoError(t, err)
		known[id.String()], known[digest.String()] = called, called
		return img, id.Hex, digest.String()
	}
	private, id, _ := made("registry.example.com/team-b/private:1")
	require.NoError(t, m.Import(t.Context(), private, "registry.example.com/team-b/private:1"))
	app, _, appDigest := made("registry.example.com/team-a/app:1")
	m.mirror.push(t, "registry.example.com", "team-a/app", "1", app)
	web, _, _ := made("docker.io/library/web:latest")
	m.mirror.push(t, "docker.io", "library/web", "latest", web)

	namespace := suite.Fresh("team-a")
	require.NoError(t, m.Client.Create(t.Context(), suite.Namespace(namespace)))

	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tPULL\tTHE NODE ASKED FOR\tTHE NODE STARTED\tLANDWAITER JUDGES")
	for i, s := range spellings(id, appDigest) {
		m.mirror.take()
		o := m.start(t, m.Pod(namespace, fmt.Sprintf("pod-%d", i), s.text, s.pull))
		asked := m.mirror.take()
		judged, err := image.Parse(s.text)
		started, said := "", "refused: "+fmt.Sprint(err)
		if o.imageID != "" {
			_, digest, _ := strings.Cut(o.imageID, "sha256:")
			started = known["sha256:"+digest]
			require.NotEmpty(t, started, "%q started %s, which nobody made", s.text, o.imageID)
		}
		if err == nil {
			said = judged.String()
		}
		shown := started
		if shown == "" {
			shown = "nothing: " + o.waiting + o.refused
		}
		fmt.Fprintf(w, "%.90s\t%s\t%.90s\t%.70s\t%.90s\n", strings.ReplaceAll(s.text, id, "<ID>"), s.pull, strings.Join(asked, ", "),
			strings.ReplaceAll(shown, "\n", " "), said)
		if err != nil {
			continue
		}
		for j, one := range asked {
			one = oneName(one)
			if j > 0 { // what the tag leads to
				require.Contains(t, one, judged.Host+"/"+judged.Repository+"@", "%q", s.text)
				continue
			}
			// Whatever the tag says, a node asks for the digest, if there is one. Under other spellings of Docker Hub it
			// asks for a repository of one word, which nobody can own there.
			word := strings.Replace(spelt(judged, false), "docker.io/library/", "docker.io/", 1)
			require.Contains(t, []string{spelt(judged, false), word}, one, "%q", s.text)
		}
		if i < asTheyShouldBe {
			require.NotEmpty(t, started, "%q: %+v", s.text, o)
		}
		if started != "" {
			want := spelt(judged, true)
			if judged.Digest != "" {
				want = known[judged.Digest.String()]
			}
			require.Equal(t, want, started, "%q is judged as another image than the node starts", s.text)
		}
	}
	require.NoError(t, w.Flush())
	t.Log("\n" + table.String())
}

// oneName gives a server that has several names the one that the product calls it by: a port that is the default,
// and the registry of Docker Hub.
func oneName(asked string) string {
	return strings.NewReplacer(":443/", "/", "registry-1.docker.io/", "docker.io/").Replace(strings.ToLower(asked))
}

// spelt is a reference as the mirror writes down what it was asked for.
func spelt(r image.Reference, byTag bool) string {
	if byTag || r.Digest == "" {
		return r.Host + "/" + r.Repository + ":" + r.Tag
	}
	return r.Host + "/" + r.Repository + "@" + r.Digest.String()
}

// asTheyShouldBe is how many of the spellings name an image in a way that must start it.
const asTheyShouldBe = 10

// spellings are all the ways that we know in which a runtime could read a string otherwise than the product.
func spellings(id, digest string) []spelling {
	const always, present, never = corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever
	other := "sha256:" + strings.Repeat("0", 64)
	return []spelling{
		// As they should be.
		{"registry.example.com/team-b/private:1", never}, {"registry.example.com/team-a/app:1", present}, {"registry.example.com/team-a/app@" + digest, present},
		{"registry.example.com/team-a/app:1@" + digest, present}, {"registry.example.com/team-a/app:old@" + digest, present},
		{"web", present}, {"library/web", present}, {"docker.io/web", present}, {"docker.io/library/web", present}, {"index.docker.io/library/web:latest", present},
		{"registry.example.com/team-a/app:1@" + other, present}, {"registry-1.docker.io/library/web:latest", present},
		// The ID of an image of the node, and what begins like it.
		{"sha256:" + id, never}, {"sha256:" + id, present}, {"sha256:" + id, always}, {"sha256:" + id[:12], never}, {"sha256:" + id[:1], present},
		{"sha256:" + id[:4], always},
		{"SHA256:" + id, present}, {"sha512:" + id, present}, {"sha384:" + id[:12], present}, {id, never}, {id, present}, {id[:12], present}, {id[:12], never},
		{id[:12] + ":latest", never},
		{"docker.io/library/sha256:" + id[:12], never}, {"library/sha256:" + id, never}, {"docker.io/library/" + id[:12], never}, {"@sha256:" + id, never},
		{"sha256@sha256:" + id, never}, {"localhost/sha256:" + id[:12], never},
		{"k8s.io/" + id, never}, {"sha256:" + id + "@sha256:" + id, never}, {" sha256:" + id, never}, {"sha256: " + id, never},
		// Hosts.
		{"registry.example.com:443/team-b/private:1", never}, {"registry.example.com:443/team-a/app:1", present}, {"registry.example.com:0443/team-a/app:1", present},
		{"registry.example.com:80/team-a/app:1", present},
		{"REGISTRY.example.com/team-a/app:1", present}, {"REGISTRY.example.com/team-b/private:1", never}, {"registry.example.com./team-a/app:1", present},
		{"registry/team-a/app:1", present},
		{"localhost/team-a/app:1", present}, {"localhost:1/team-a/app:1", present}, {"127.0.0.1:1/team-a/app:1", present}, {"127.1:1/team-a/app:1", present},
		{"[::1]:1/team-a/app:1", present}, {"2130706433:1/team-a/app:1", present},
		{"docker.io:443/library/web", present}, {"Docker.io/library/web", present}, {"DOCKER.IO/web", present}, {"docker.io./web", present},
		{"xn--dcker-jua.io/web", present}, {"döcker.io/web", present},
		// Paths, tags and digests.
		{"registry.example.com/Team-A/app:1", present}, {"registry.example.com//team-a/app:1", present}, {"registry.example.com/team-a/../team-b/private:1", present},
		{"registry.example.com/team-a%2fapp:1", present},
		{"registry.example.com/team-a/app:1/", present}, {"registry.example.com/team-a/app:", present}, {"registry.example.com/team-a/app@", present},
		{"registry.example.com/team-a/app:1 ", present},
		{"registry.example.com/team-a/app:1\n", present}, {"registry.example.com/team-a/app:" + strings.Repeat("a", 129), present},
		{"registry.example.com/team-a/app:-1", present},
		{"registry.example.com/team-a/app@sha512:" + strings.Repeat("0", 128), present}, {"registry.example.com/team-a/app@md5:" + strings.Repeat("0", 32), present},
		{"registry.example.com/team-a/app@" + strings.ToUpper(digest), present},
		{"registry.example.com/team-a/app@" + digest + "@" + digest, present}, {"registry.example.com/team-a/app:1:1", present},
		{"registry.example.com/team-a/app:1?ns=x", present}, {"registry.example.com/team-a/app#1", present},
		// What other programs take.
		{"https://registry.example.com/team-a/app:1", present}, {"http://registry.example.com/team-a/app:1", present},
		{"oci://registry.example.com/team-a/app:1", present}, {"docker://registry.example.com/team-a/app:1", present},
		{"user@registry.example.com/team-a/app:1", present}, {"user:pw@registry.example.com/team-a/app:1", present}, {"docker-daemon:team-a/app:1", present},
		{"containers-storage:app", present}, {"dir:/tmp", present}, {"scratch", present},
	}
}
