package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is the value of --output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// register declares --output on a command that prints results.
func (f *format) register(cmd *cobra.Command) {
	*f = formatTable
	cmd.Flags().VarP(f, "output", "o", "table, json or yaml; docs/cli.md has the fields")
}

// String returns the value.
func (f *format) String() string { return string(*f) }

// Type returns what help calls the value.
func (f *format) Type() string { return "format" }

// Set refuses other values.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
		*f = format(s)
		return nil
	}
	return errors.New("it must be table, json or yaml")
}

// show prints value in JSON or YAML, or shows it.
func (f *format) print(cmd *cobra.Command, value shown) error {
	out := cmd.OutOrStdout()
	if *f == formatTable {
		return unavailable(show(out, value))
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return unavailable(err)
	}
	text := escaped(buffer.Bytes())
	if *f == formatYAML {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return unavailable(err)
		}
		// What is still there, such as text from right to left, YAML has no escape for without quotes.
		text = bytes.Join(mapped(bytes.Split(text, []byte("\n")), func(line []byte) []byte { return []byte(oneLine(string(line))) }), []byte("\n"))
	}
	_, err := out.Write(text)
	return unavailable(err)
}

// escaped writes characters that control a terminal as JSON's escapes: encoding/json does so
// below U+0020 only.
func escaped(text []byte) []byte {
	made := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			made = utf8.AppendRune(made, r)
		case utf16.RuneLen(r) == 2:
			high, low := utf16.EncodeRune(r)
			made = fmt.Appendf(made, `\u%04x\u%04x`, high, low)
		default:
			made = fmt.Appendf(made, `\u%04x`, r)
		}
	}
	return made
}

// duration is a time that JSON has in milliseconds with their unit, such as "12.5ms".
type duration time.Duration

// MarshalText returns the milliseconds, with three decimals at most.
func (d duration) MarshalText() ([]byte, error) { //nolint:unparam // encoding.TextMarshaler
	milliseconds := float64(time.Duration(d).Round(time.Microsecond)) / float64(time.Millisecond)
	return append(strconv.AppendFloat(nil, milliseconds, 'f', -1, 64), "ms"...), nil
}

// String returns the duration as people read it.
func (d duration) String() string { return time.Duration(d).Round(time.Microsecond).String() }
