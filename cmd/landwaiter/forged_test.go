package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// forged is what a tenant may write into a reason or a name: a row of its own, a write to the
// clipboard (OSC 52), a clear screen in the one-character form of CSI, and text from right to left.
const forged = "denied\nregistry.example.com/forged:1\tALLOWED\tsha256:00\tverified\x1b]52;c;cm0gLXJmIC8=\a\u009b2J\u202e"

func TestTextOfTenantsForgesNoRowAndControlsNoTerminal(t *testing.T) {
	t.Parallel()
	printers := map[string]shown{
		"verify": &printedResults{}, "verify --explain": &printedExplanations{}, "verify --digest": &printedResolutions{}, "status": &printedStatus{},
		"preview": &printedPreview{},
		"check":   &printedFindings{}, "cache show, of all": &printedUsage{}, "cache show": &printedListing{},
		"tenant list": &printedTenants{}, "tenant list --namespaces": &printedTenantNamespaces{},
		"tenant add": &printedAdded{}, "tenant delete": &printedDeleted{}, "platform init": &printedTree{},
	}
	for name, printer := range printers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fill(reflect.ValueOf(printer).Elem())
			var table bytes.Buffer
			require.NoError(t, show(&table, printer))
			requirePlain(t, table.String())
			require.Contains(t, table.String(), "forged", "the text itself is shown")

			for _, output := range []format{formatJSON, formatYAML, "jsonpath={@}", "go-template={{.}}"} {
				var text bytes.Buffer
				cmd := &cobra.Command{}
				cmd.SetOut(&text)
				require.NoError(t, output.print(cmd, printer))
				requirePlain(t, text.String())
				require.Contains(t, text.String(), "forged")
			}
		})
	}
}

func TestErrorsForgeNoLine(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, program.ExitUsage, run(t.Context(), []string{"verify", "--config-dir", t.TempDir(), forged}, &out, &errs))
	requirePlain(t, errs.String())
	require.Contains(t, errs.String(), "forged")
}

// requirePlain fails if text controls a terminal or has a line that begins with the forged row.
func requirePlain(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		require.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
		require.False(t, strings.HasPrefix(line, "registry.example.com/forged"), "a forged row in\n%s", text)
	}
}

// fill sets every string within value, and gives every list one entry.
func fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(forged)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0))
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() || value.Type().Field(i).Anonymous {
				fill(value.Field(i))
			}
		}
	default: // numbers cannot forge anything
	}
}
