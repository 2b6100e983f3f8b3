package page

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fenced replaces ”' by a fence, which raw strings cannot have.
func fenced(text string) string { return strings.ReplaceAll(text, "'''", "```") }

func TestBlocksHaveTheirMarks(t *testing.T) {
	blocks, err := parse(fenced(`
# Title
'''
one
'''
## Section
1. In a list
   <!-- test: stand-in registry: there is none -->
   '''sh
   two
     indented
   '''
### Part
<!-- test: save as x.yaml -->

'''yaml
a: b
'''
`))
	require.NoError(t, err)
	require.Equal(t, []Block{
		{Line: 3, Text: "one\n", Mark: Run},
		{Section: "Section", Line: 9, Language: "sh", Text: "two\n  indented\n", Mark: StandIn, Name: "registry", Why: "there is none"},
		{Section: "Section", Part: "Part", Line: 16, Language: "yaml", Text: "a: b\n", Mark: Save, Name: "x.yaml"},
	}, blocks)
}

func TestMarksThatSayNothingAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"unknown":           "<!-- test: later -->\n'''\nx\n'''\n",
		"no reason":         "<!-- test: not run -->\n'''\nx\n'''\n",
		"no name":           "<!-- test: stand-in: why -->\n'''\nx\n'''\n",
		"not at its block":  "<!-- test: fails -->\ntext\n'''\nx\n'''\n",
		"block without end": "'''\nx\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(fenced(text))
			require.Error(t, err)
		})
	}
}

func TestCommandsRunInOrderAndOutputIsCompared(t *testing.T) {
	blocks, err := parse(fenced(`
<!-- test: save as names.txt -->
'''yaml
registry.example.com
'''
'''
cat names.txt > copy.txt
echo "the registry is
$(cat copy.txt), traceID 79aa169c0f75b15593f37b86f1926953"
'''
<!-- test: output -->
'''text
the registry is registry.example.com,
traceID 00000000000000000000000000000000
'''
<!-- test: fails -->
'''
echo refused >&2; false; echo not reached
'''
<!-- test: output -->
'''text
refused
'''
`))
	require.NoError(t, err)
	dir := t.TempDir()
	r := &Runner{Dir: dir, Environment: []string{"PATH=" + os.Getenv("PATH")}, Progress: io.Discard,
		Substitutions: []Substitution{{Page: "registry.example.com", Test: "127.0.0.1:5000", Why: "it has no name"}}}
	require.NoError(t, r.Run(t.Context(), blocks...))
	saved, err := os.ReadFile(filepath.Join(dir, "copy.txt"))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:5000\n", string(saved))
}

func TestCommandsAreRepeatedUntilTheyPrintWhatIsShown(t *testing.T) {
	r := &Runner{Dir: t.TempDir(), Environment: []string{"PATH=" + os.Getenv("PATH")}, Progress: io.Discard}
	require.NoError(t, r.Run(t.Context(), Block{Text: "echo -n x >> file; cat file\n", Mark: Repeat}, Block{Text: "xxx\n", Mark: Output, Language: "text"}))
}

func TestBlocksOfAnotherTestRunForThatTestAlone(t *testing.T) {
	for name, want := range map[string]string{"TestThis": "ab", "TestOther": "a"} {
		r := &Runner{Test: name, Dir: t.TempDir(), Environment: []string{"PATH=" + os.Getenv("PATH")}, Progress: io.Discard}
		require.NoError(t, r.Run(t.Context(), Block{Text: "echo -n a >> file\n", Mark: Run}, Block{Text: "echo -n b >> file\n", Mark: By, Name: "TestThis"}))
		got, err := os.ReadFile(filepath.Join(r.Dir, "file"))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestOutputMayBeCutWhereThePageSaysSo(t *testing.T) {
	const printed = "image a is denied: nothing was found. To fix: sign it (traceID 79aa169c0f75b15593f37b86f1926953)"
	require.NoError(t, Compare("denied: … (traceID 00000000000000000000000000000000)", printed))
	require.NoError(t, Compare("image a is denied: nothing was found …", printed))
	require.Error(t, Compare("sign it … denied", printed), "the order counts")
	require.Error(t, Compare("denied … refused", printed))
	require.Error(t, Compare("…", printed), "which shows nothing")
}

func TestPagesThatAreNotTrueAreNamed(t *testing.T) {
	r := &Runner{Dir: t.TempDir(), Environment: []string{"PATH=" + os.Getenv("PATH")}, Progress: io.Discard,
		StandIns: map[string]func(context.Context, Block) (string, error){}}
	for name, blocks := range map[string][]Block{
		"a command fails":                        {{Text: "false\n", Mark: Run}},
		"an earlier command of a block fails":    {{Text: "false\ntrue\n", Mark: Run}},
		"a command does not fail":                {{Text: "true\n", Mark: Fails}},
		"another output":                         {{Text: "echo a\n", Mark: Run}, {Text: "b\n", Mark: Output, Language: "text"}},
		"a repetition without output":            {{Text: "true\n", Mark: Repeat}},
		"an output that shows nothing":           {{Text: "echo a\n", Mark: Run}, {Text: "\n", Mark: Output, Language: "text"}},
		"a stand-in that the test does not have": {{Text: "x\n", Mark: StandIn, Name: "other"}},
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, r.Run(t.Context(), blocks...)) })
	}
}
