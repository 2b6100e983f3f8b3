// Command table reads what Go benchmarks print and writes the figures of the design
// as ratios of one run: as a table, and with -json as JSON. It ends with 1 if a
// figure is missed and -strict is given.
//
//	go test ./test/load -run '^$' -bench . | go run ./test/load/table
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// figure is one thing to reach.
type figure struct {
	Name   string  `json:"name"`
	Target float64 `json:"target"`
	// AtLeast says that more is better; else less is.
	AtLeast bool    `json:"atLeast"`
	Value   float64 `json:"value"`
	Met     bool    `json:"met"`
	Unit    string  `json:"unit"`

	of func(results) (float64, error)
}

// results are metrics by benchmark and unit.
type results map[string]map[string]float64

var errMissing = errors.New("was not measured")

func (r results) get(benchmark, unit string) (float64, error) {
	value, ok := r[benchmark][unit]
	if !ok {
		return 0, fmt.Errorf("%s in %s: %w", benchmark, unit, errMissing)
	}
	return value, nil
}

// ratio is one metric of a over the same of b.
func ratio(a, b, unit string) func(results) (float64, error) {
	return func(r results) (float64, error) {
		x, err := r.get(a, unit)
		if err != nil {
			return 0, err
		}
		y, err := r.get(b, unit)
		return x / y, err
	}
}

// added is how much more b takes than a, over what all takes.
func added(a, b, all string) func(results) (float64, error) {
	return func(r results) (float64, error) {
		values := make([]float64, 3)
		for i, name := range []string{a, b, all} {
			var err error
			if values[i], err = r.get(name, "ns/op"); err != nil {
				return 0, err
			}
		}
		return (values[1] - values[0]) / values[2], nil
	}
}

func value(benchmark, unit string, scale float64) func(results) (float64, error) {
	return func(r results) (float64, error) {
		x, err := r.get(benchmark, unit)
		return x * scale, err
	}
}

const (
	provider, bare = "HTTPSWarm/provider/", "HTTPSWarm/bare/"
	toMillis       = 1e-6
)

func figures() []figure {
	return []figure{
		{Name: "warm HTTPS throughput over a bare TLS handler, 10 connections", Target: 0.8, AtLeast: true, of: ratio(bare+"parallel", provider+"parallel", "ns/op")},
		{Name: "warm HTTPS p99 over a bare TLS handler, 10 connections", Target: 2, of: ratio(provider+"parallel", bare+"parallel", "p99-ns")},
		{Name: "warm HTTPS throughput over a bare TLS handler, a handshake each", Target: 0.8, AtLeast: true,
			of: ratio(bare+"handshake_each", provider+"handshake_each", "ns/op")},
		{Name: "what 1,000 namespaces add to a warm request, over a bare one", Target: 0.1,
			of: added("EngineWarm/1_namespaces", "EngineWarm/1000_namespaces", bare+"parallel")},
		{Name: "cold verification, own time, registry at 0 ms", Target: 3, Unit: "ms", of: value("ColdLatency/0s", "own-ms", 1)},
		{Name: "cold verification, own time, registry at 5 ms", Target: 3, Unit: "ms", of: value("ColdLatency/5ms", "own-ms", 1)},
		{Name: "cold verification, own time, registry at 20 ms", Target: 3, Unit: "ms", of: value("ColdLatency/20ms", "own-ms", 1)},
		{Name: "one of 1,000 namespaces compiled anew", Target: 50, Unit: "ms", of: value("Change", "ns/op", toMillis)},
		{Name: "verifications for 512 keys of 32 images in one request", Target: 32, of: value("ManyKeys", "verifications", 1)},
		{Name: "round trips to Redis for a verdict that only Redis has", Target: 1, of: value("RedisWarm", "round-trips", 1)},
		{Name: "p99 beside a flooding namespace over quiet", Target: 2, of: value("Flood", "ratio", 1)},
		{Name: "p99 beside a Tenant whose 50 namespaces flood, over quiet", Target: 2, of: value("FloodOfATenant", "ratio", 1)},
		{Name: "VerifiedImages over its yardstick, allowed, the most of 1, 10 and 50 images", Target: 1.5,
			of: most("VerifiedImages/allowed/images=", "over-yardstick", "1", "10", "50")},
		{Name: "VerifiedImages over its yardstick, denied, the most of 1, 10 and 50 images", Target: 1.5,
			of: most("VerifiedImages/denied/images=", "over-yardstick", "1", "10", "50")},
	}
}

// most is the largest of one metric of several benchmarks that differ in their last part.
func most(prefix, unit string, last ...string) func(results) (float64, error) {
	return func(r results) (float64, error) {
		largest := 0.0
		for _, each := range last {
			x, err := r.get(prefix+each, unit)
			if err != nil {
				return 0, err
			}
			largest = max(largest, x)
		}
		return largest, nil
	}
}

var (
	line      = regexp.MustCompile(`^Benchmark(\S+)\s+\d+\s+(.+)$`)
	processor = regexp.MustCompile(`-\d+$`)
)

// parse reads benchmark lines (the format of golang.org/design/14313-benchmark-format)
// and passes everything on to echo.
func parse(in io.Reader, echo io.Writer) (results, error) {
	found := results{}
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		fmt.Fprintln(echo, scanner.Text())
		match := line.FindStringSubmatch(scanner.Text())
		if match == nil {
			continue
		}
		metrics := map[string]float64{}
		fields := strings.Fields(match[2])
		for i := 0; i+1 < len(fields); i += 2 {
			number, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", scanner.Text(), err)
			}
			metrics[fields[i+1]] = number
		}
		found[processor.ReplaceAllString(match[1], "")] = metrics
	}
	return found, scanner.Err()
}

// judge fills in what was measured.
func judge(measured results) ([]figure, error) {
	all := figures()
	for i := range all {
		f := &all[i]
		reached, err := f.of(measured)
		if err != nil {
			return nil, err
		}
		f.Value = reached
		f.Met = (f.AtLeast && reached >= f.Target) || (!f.AtLeast && reached <= f.Target)
	}
	return all, nil
}

func run(in io.Reader, out, echo io.Writer, asJSON string, strict bool) error {
	measured, err := parse(in, echo)
	if err != nil {
		return err
	}
	all, err := judge(measured)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tMEASURED\tTARGET\t")
	missed := 0
	for _, f := range all {
		sign, verdict := "≤", "met"
		if f.AtLeast {
			sign = "≥"
		}
		if !f.Met {
			verdict = "missed"
			missed++
		}
		fmt.Fprintf(table, "%s\t%.2f %s\t%s %g %s\t%s\n", f.Name, f.Value, f.Unit, sign, f.Target, f.Unit, verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if asJSON != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the figures: %w", err)
		}
		if err := os.WriteFile(asJSON, append(text, '\n'), 0o600); err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	if strict && missed > 0 {
		return fmt.Errorf("%d figures were missed", missed)
	}
	return nil
}

func main() {
	asJSON := flag.String("json", "", "file for the figures as JSON")
	strict := flag.Bool("strict", false, "fail if a figure is missed")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, os.Stderr, *asJSON, *strict); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}
