//go:build nightly

package precedence

import (
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Each sentence of the page is broken in the specification, and the comparison with the engine
// notices.
func TestEverySentenceOfThePageHasAMutantThatTheComparisonKills(t *testing.T) {
	answers := record(t)
	specification := read(t, "specification.go")
	survives := func(text string) (bool, error) {
		dir := t.TempDir()
		for name, content := range map[string]string{"go.mod": "module mutant\n\ngo 1.24\n", "specification.go": text, "world.go": read(t, "world.go"),
			"main.go": read(t, "testdata/compare.go.txt")} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(content, "package precedence", "package main", 1)), 0o600))
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-o", "mutant", ".")
		build.Dir = dir
		build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := build.CombinedOutput(); err != nil {
			return false, fmt.Errorf("%w: %s", err, out)
		}
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "mutant"), answers).CombinedOutput()
		if err != nil {
			return false, fmt.Errorf("%w: %s", err, out)
		}
		return strings.TrimSpace(string(out)) == "equal", nil
	}
	same, err := survives(specification)
	require.NoError(t, err)
	require.True(t, same, "the specification itself")

	all := mutants()
	var wait sync.WaitGroup
	turns := make(chan struct{}, 2)
	for sentence, mutant := range all {
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			lives, err := survives(strings.Replace(specification, mutant[0], mutant[1], 1))
			switch {
			case err != nil:
				t.Errorf("%s: %v", sentence, err)
			case lives:
				t.Errorf("no world notices that this does not hold: %s", sentence)
			}
		})
	}
	wait.Wait()
	if !t.Failed() {
		t.Logf("%d mutants were killed", len(all))
	}
}

// record writes worlds and what the engine says about them into a file.
func record(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "answers")
	file, err := os.Create(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	engine, encoder := verify.NewEngine(nothing{}, now, verify.Options{}), gob.NewEncoder(file)
	for seed := range uint64(3000) {
		var answers []Answer
		require.NoError(t, compareWorlds(seed+1, func(a Answer, _ policy.Outcome) { answers = append(answers, a) }, engine))
		require.NoError(t, encoder.Encode(newDice(seed+1).world()))
		require.NoError(t, encoder.Encode(answers))
	}
	return name
}
