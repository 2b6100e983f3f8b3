// Command scale works out what Landwaiter needs in clusters that are larger than any that was
// measured, from the costs of one thing that were, and prints it as a Markdown table. Every cost
// and assumption is a flag.
//
//	go run ./test/load/scale -registry-limit 1000
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(args []string, out, help io.Writer) error {
	var in inputs
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(help)
	in.register(flags)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if !in.positive() || flags.NArg() > 0 {
		return errors.New("all flags must be positive numbers, and there are no arguments")
	}
	if _, err := io.WriteString(out, table(in)); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// row is one line of the table.
type row struct {
	title string
	cell  func(needs) string
}

func rows() []row {
	return []row{
		{"teams, namespaces", func(n needs) string { return number(n.teams) + ", " + number(n.namespaces) }},
		{"images, pairs of image and namespace", func(n needs) string { return number(n.images) + ", " + number(n.pairs) }},
		{"admissions a second: deploy wave, zone failure", func(n needs) string { return number(n.wave) + ", " + number(n.failure) }},
		{"pods a second that audit asks for", func(n needs) string { return number(n.audit) }},
		{"CPUs of all replicas at the peak", func(n needs) string { return number(n.processors) }},
		{"**replicas**", func(n needs) string { return number(n.replicas) }},
		{"memory of a replica with default settings; of that for watches (MiB)", func(n needs) string { return number(n.memory) + "; " + number(n.watched) }},
		{"**set `cache.bytes` to, set the memory limit to** (MiB)", func(n needs) string { return fmt.Sprintf("%.0f, %.0f", n.cache, n.limit) }},
		{"Redis: memory (MiB)", func(n needs) string { return number(n.redisMemory) }},
		{"Redis: MiB a second that a new replica reads", func(n needs) string { return number(n.redisPerSecond) }},
		{"registry requests a second: steady", func(n needs) string { return number(n.registrySteady) }},
		{"registry requests a second: deploy wave", func(n needs) string { return number(n.registryWave) }},
		{"registry requests a second: after a change of rules", func(n needs) string { return number(n.registryChange) }},
		{"registry requests a second: all replicas and Redis empty", func(n needs) string { return number(n.registryCold) }},
		{"minutes of that, at the registry's limit", func(n needs) string { return number(n.coldMinutes) }},
		{"registry requests a second: all replicas empty, no Redis", func(n needs) string { return number(n.registryAlone) }},
		{"Gatekeeper: CPUs of the webhook in a zone failure", func(n needs) string { return number(n.gatekeeper) }},
		{"Gatekeeper: seconds of CPU of one audit", func(n needs) string { return number(n.auditTime) }},
		{"**breaks first** with default settings (share of its limit)", func(n needs) string {
			first := n.breaksFirst()
			return fmt.Sprintf("%s (%.0f %%)", first.name, 100*first.used)
		}},
	}
}

// table prints all shapes as Markdown.
func table(in inputs) string {
	text := &strings.Builder{}
	var all []needs
	head, line := "| |", "|---|"
	for _, s := range shapes() {
		all = append(all, estimate(s, in))
		head += fmt.Sprintf(" %s nodes, %s pods each |", number(s.nodes), number(s.podsPerNode))
		line += "---|"
	}
	fmt.Fprintf(text, "%s\n%s\n", head, line)
	for _, r := range rows() {
		fmt.Fprintf(text, "| %s |", r.title)
		for _, n := range all {
			fmt.Fprintf(text, " %s |", r.cell(n))
		}
		fmt.Fprintln(text)
	}
	return text.String()
}

// number rounds to two digits, as inputs are no more exact, and separates thousands.
func number(x float64) string {
	if x == 0 {
		return "0"
	}
	scale := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-1)
	x = math.Round(x/scale) * scale
	if x < 10 {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
