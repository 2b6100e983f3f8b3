package main

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

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

// print prints value in JSON or YAML, or what asTable prints.
func (f *format) print(cmd *cobra.Command, value any, asTable func(io.Writer) error) error {
	out := cmd.OutOrStdout()
	switch *f {
	case formatJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return unavailable(encoder.Encode(value))
	case formatYAML:
		text, err := yaml.Marshal(value)
		if err != nil {
			return unavailable(err)
		}
		_, err = out.Write(text)
		return unavailable(err)
	case formatTable:
	}
	return unavailable(asTable(out))
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
