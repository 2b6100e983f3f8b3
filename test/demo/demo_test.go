package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/edge"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// denying denies every image: the zero Verdict does.
type denying struct{}

func (denying) Verify(_ context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	return verify.Result{Namespace: namespace, Reference: ref}
}

func (denying) Account(namespace verify.Namespace) verify.Account { return namespace.Account() }

func (denying) Recall(verify.Namespace, image.Reference) (verify.Result, bool) {
	return verify.Result{}, false
}

func (denying) Resolve(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
	return ref, nil
}

func TestTheDemoTellsTheStoryBeforeTheTable(t *testing.T) {
	var out, complaints bytes.Buffer
	require.NoError(t, run(t.Context(), &out, &complaints, true), complaints.String())
	require.Empty(t, complaints.String())
	text := out.String()
	place := 0
	for _, line := range []string{
		`(?m)^The same image, two teams, two verdicts: shared/app:v1 is signed with team-a's key\.$`,
		`(?m)^  allowed in team-a, because\n +\S`,
		`(?m)^  denied  in team-b, because\n +\S`,
		`(?m)^VERDICT +NAMESPACE +IMAGE +WHAT +COLD +WARM$`,
		`(?m)^allowed +team-a +shared/app:v1 +signed by team-a with cosign +[0-9.]+`,
		`(?m)^denied +team-b +shared/app:v1 +the same image, another team +[0-9.]+`,
		`(?m)^allowed +team-a +team-a/moved@sha256:[0-9a-f]{5}… +the digest that was signed`,
		`(?m)^refused +team-b +\[team-a\]shared/app:v1 +an image string that names a namespace`,
		`(?m)^  team-a/unsigned:v1 in team-a\n +\S`,
	} {
		found := regexp.MustCompile(line).FindStringIndex(text[place:])
		require.NotNil(t, found, "%s is not after what comes before it in\n%s", line, text)
		place += found[0]
	}
	require.NotContains(t, text, "expected")
	require.NotContains(t, text, "\x1b", "colours are for terminals")
	for _, line := range strings.Split(text, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	require.Equal(t, "\x1b[32mallowed\x1b[0m", printer{colour: true}.verdict(gatekeeper.Allowed))
	require.Equal(t, "\x1b[31mdenied \x1b[0m", printer{colour: true}.verdict(gatekeeper.Denied))
	require.Equal(t, "denied ", printer{}.verdict(gatekeeper.Denied))
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	require.NoError(t, err)
	defer device.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.False(t, forTerminals(file).colour)
	require.True(t, forTerminals(device).colour)
	t.Setenv("NO_COLOR", "1")
	require.False(t, forTerminals(device).colour)
}

func TestAnUnexpectedVerdictFailsTheDemo(t *testing.T) {
	client := edge.Start(t, denying{}, provider.Options{}).Client
	answers, err := askAll(t.Context(), client, []example.Question{
		{Title: "denied", Key: "[team-a]r.example.com/app:v1", Want: gatekeeper.Denied},
		{Title: "not allowed", Key: "[team-a]r.example.com/app:v2", Want: gatekeeper.Allowed},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.ErrorContains(t, printer{out: &out}.table(answers), "1 verdicts were not the expected ones")
	require.Contains(t, out.String(), "denied then denied, expected allowed")
}
