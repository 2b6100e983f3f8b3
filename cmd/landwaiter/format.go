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
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

// format is the value of --output. One with a template begins with its name, as for kubectl:
// jsonpath={.results[0].reason}.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// add declares --output among flags.
func (f *format) add(flags *pflag.FlagSet) {
	*f = formatTable
	flags.VarP(f, "output", "o", "output format: table, json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE")
}

// String returns the value.
func (f *format) String() string { return string(*f) }

// Type returns what help calls the value.
func (f *format) Type() string { return "format" }

// Set refuses other values, and invalid templates.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
	default:
		if _, err := format(s).template(); err != nil {
			return err
		}
	}
	*f = format(s)
	return nil
}

// template returns kubectl's printer for a template.
func (f format) template() (printers.ResourcePrinter, error) {
	paths := &genericclioptions.JSONPathPrintFlags{}
	templates := &genericclioptions.GoTemplatePrintFlags{}
	for _, of := range []interface {
		ToPrinter(format string) (printers.ResourcePrinter, error)
	}{paths, templates} {
		printer, err := of.ToPrinter(string(f))
		if !genericclioptions.IsNoCompatiblePrinterError(err) {
			return printer, err
		}
	}
	return nil, errors.New("it must be table, json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE")
}

// print prints value in the format. Printed text never controls a terminal.
func (f *format) print(cmd *cobra.Command, value shown) error {
	out := cmd.OutOrStdout()
	if *f == formatTable {
		return program.Failed(show(out, value))
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return program.Failed(err)
	}
	text, err := buffer.Bytes(), error(nil)
	switch *f { //nolint:exhaustive // a table is printed above
	case formatJSON:
		text = escaped(text)
	case formatYAML:
		// YAML has no escape without quotes for the remaining characters, such as text from right to
		// left.
		text, err = yaml.JSONToYAML(escaped(text))
		text = plainLines(text)
	default:
		text, err = f.templated(text)
	}
	if err != nil {
		return err
	}
	return document(out, text)
}

// templated returns the output of a template for a result in JSON.
func (f *format) templated(encoded []byte) ([]byte, error) {
	printer, err := f.template()
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &result.Object); err != nil {
		return nil, program.Failed(err)
	}
	plainValues(result.Object)
	var made bytes.Buffer
	if err := printer.PrintObj(result, &made); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return plainLines(made.Bytes()), nil
}

// plainValues makes each text in a result one line, so that only a template begins lines. It
// changes and returns value.
func plainValues(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = plainValues(value[name])
		}
	case []any:
		for i := range value {
			value[i] = plainValues(value[i])
		}
	case string:
		return program.OneLine(value)
	}
	return value
}

// plainLines makes each line printable.
func plainLines(text []byte) []byte {
	lines := mapped(bytes.Split(text, []byte("\n")), func(line []byte) []byte { return []byte(program.OneLine(string(line))) })
	return bytes.Join(lines, []byte("\n"))
}

// escaped writes characters that control a terminal as JSON escapes: encoding/json only does
// so below U+0020.
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

// duration is a time that JSON contains in milliseconds with their unit, such as "12.5ms".
type duration time.Duration

// MarshalText returns the milliseconds, with at most three decimals.
func (d duration) MarshalText() ([]byte, error) { //nolint:unparam // encoding.TextMarshaler
	milliseconds := float64(time.Duration(d).Round(time.Microsecond)) / float64(time.Millisecond)
	return append(strconv.AppendFloat(nil, milliseconds, 'f', -1, 64), "ms"...), nil
}

// String returns the duration as people read it.
func (d duration) String() string { return time.Duration(d).Round(time.Microsecond).String() }
