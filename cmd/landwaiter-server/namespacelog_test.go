package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// A pipeline that shows each team the lines with its namespace, as docs/design/multitenancy.md
// proposes, must show them all of theirs and nothing of others.
func TestEveryLineAboutANamespaceNamesItAndShowsNothingOfAnother(t *testing.T) {
	s := startServe(t, "--log-level", "debug")
	// Each namespace asks about images of its own only.
	images := map[string][]string{"team-a": {"shared/app:v1", "team-a/secret-name-of-a:v1"}, "team-b": {"shared/web:v1", "team-b/secret-name-of-b:v1"}}
	both := func() (keys []string) {
		for namespace, all := range images {
			for _, image := range all {
				keys = append(keys, fmt.Sprintf("[%s]%s/%s", namespace, s.Registry.Host(), image))
			}
		}
		return keys
	}
	asked := func(path string, keys ...string) { _, _ = s.client.Ask(t.Context(), path, keys...) } // verdicts are other tests' business
	asked(gatekeeper.VerifyPath, both()...)
	asked("/v1/audit/verify", both()...)
	for namespace, all := range images {
		for _, image := range all {
			asked(gatekeeper.VerifyPath, fmt.Sprintf("[%s]%s/%s", namespace, s.Registry.Host(), image))
			asked("/v1/namespaces/"+namespace+"/mutate", s.Registry.Host()+"/"+image)
			asked("/v1/namespaces/"+namespace+"/verify", "NOT/an@image:of-"+namespace)
		}
	}
	asked(gatekeeper.VerifyPath, "[x")
	asked("/nowhere", "team-a/secret-name-of-a:v1")
	broken := "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-z}\n---\napiVersion: landwaiter.dev/v1beta1\nkind: TrustStore\nmetadata: {name: keys, " +
		"namespace: team-z}\nspec: {type: PublicKeys, source: {inline: rubbish}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, "broken.yaml"), []byte(broken), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, "unreadable.yaml"), []byte("{{{{"), 0o600))
	require.Eventually(t, func() bool {
		return strings.Contains(s.log.String(), "TrustStore team-z/keys") && strings.Contains(s.log.String(), "unreadable.yaml") &&
			strings.Contains(s.log.String(), `"endpoint":"unknown"`)
	}, time.Minute, 10*time.Millisecond, s.log)
	s.stop()
	require.Equal(t, program.ExitOK, <-s.ended)

	// aboutNone are the messages that are about no namespace, or may be.
	aboutNone := []string{"resources are in force", "TLS identity reloaded", "a connection failed", "waiting for the certificate and the client CA"}
	seen, filtered := map[string]int{}, map[string]string{} // by the field, as the jq command of docs/operate/logs.md filters
	for text := range strings.Lines(s.log.String()) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		namespace, has := line["namespace"].(string)
		seen[namespace]++
		filtered[namespace] += text
		require.NotEqual(t, has, namespace == "", "an empty namespace says nothing: %s", text)
		for owner, all := range images {
			for _, image := range all {
				name, _, _ := strings.Cut(image, ":")
				if strings.Contains(text, name) || strings.Contains(text, "of-"+owner) {
					require.Equal(t, owner, namespace, text)
				}
			}
		}
		switch message := line["msg"].(string); { //nolint:forcetypeassert // every line has one
		case slices.Contains(aboutNone, message):
			require.False(t, has, text)
		case message == "a resource has a problem":
			require.Equal(t, strings.HasPrefix(line["resource"].(string), "File "), !has, text) //nolint:forcetypeassert // so has this
		case message == "request" && line["endpoint"] == "unknown", line["key"] == `"[x"`:
			require.False(t, has, text)
		case message == "request" && line["invalid"] == 1.0 && line["keys"] == 1.0 && line["endpoint"] == "verify":
			require.False(t, has, text)
		default:
			require.True(t, has, text)
		}
	}
	for owner, all := range images {
		for _, image := range all {
			require.Contains(t, filtered[owner], `"image":"`+s.Registry.Host()+"/"+image+`"`, "a team misses a line of its own")
		}
		require.Contains(t, filtered[owner], "of-"+owner)
	}
	require.Contains(t, filtered["team-z"], "TrustStore team-z/keys")
	for _, namespace := range []string{"team-a", "team-b", "team-z", "*", ""} {
		require.Positive(t, seen[namespace], "no line about %q:\n%s", namespace, s.log)
	}
}
