// Command ladder starts the program itself, a registry and a Redis on this machine, and
// asks as Gatekeeper does: HTTP/1.1, TLS 1.3, a client certificate, at most 10 connections
// that are kept, or a handshake for each call as Gatekeeper up to 3.21. It writes what it
// measured as a table and as JSON. Every answer is checked: a
// wrong one, or a request that fails where none may, ends it with 1.
//
//	go build -o bin/ ./cmd/landwaiter-server && go run ./test/load/ladder
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// options are the flags.
type options struct {
	root        string
	binary      string
	before      string
	only        string
	jsonFile    string
	duration    time.Duration
	connections int
	clients     []int
	images      int
	cold        int
	pods        int
	rounds      int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the folder of the repository, for the chart and the templates")
	flag.StringVar(&o.binary, "binary", "bin/landwaiter-server", "the program to measure")
	flag.StringVar(&o.before, "before", "", "an older build of the program, which takes turns with it in the warm scenario")
	flag.StringVar(&o.only, "run", ".", "which scenarios, a regular expression")
	flag.StringVar(&o.jsonFile, "json", "", "file for the figures as JSON")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "how long a scenario without an end of its own lasts")
	flag.IntVar(&o.connections, "connections", 10, "connections of the client; Gatekeeper keeps 10 at most")
	o.clients = []int{1, 10, 50, 200} // the ladder that Kyverno publishes
	flag.Func("clients", "clients of the admission ladder, separated by commas (default 1,10,50,200)", func(text string) (err error) {
		o.clients, err = parseClients(text)
		return err
	})
	flag.IntVar(&o.rounds, "rounds", 10, "how often each system of the warm scenario and of the admission ladder has its turn, in the ladder with each "+
		"number of clients")
	flag.IntVar(&o.images, "images", 200, "distinct images, one in ten of them not signed")
	flag.IntVar(&o.cold, "cold", 300, "images of a cold scenario, and twice as many of the throttled one")
	flag.IntVar(&o.pods, "pods", 10_000, "pods of the sweep, ten images each")
	bareDir := flag.String("bare", "", "be the bare handler, with the files in this folder (what the program starts itself with)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *bareDir != "" {
		err = serveBare(ctx, *bareDir)
	} else {
		err = run(ctx, o, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ladder:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

func parseClients(text string) ([]int, error) {
	var clients []int
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 1000 {
			return nil, fmt.Errorf("%q is no number from 1 to 1000", number)
		}
		clients = append(clients, n)
	}
	return clients, nil
}

// report is what is written down.
type report struct {
	Command    string   `json:"command"`
	Go         string   `json:"go"`
	Processors int      `json:"processors"`
	Scenarios  []figure `json:"scenarios"`
}

// errWrong is a run whose figures mean nothing.
var errWrong = errors.New("some answers were wrong, or missing where none may be")

// run measures every scenario that is asked for and writes the report.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if o.connections < 1 || o.images < 10 || o.cold < 1 || o.pods < 1 || o.rounds < 1 || o.duration <= 0 {
		return errors.New("-connections, -cold, -pods, -rounds and -duration must be positive, and -images 10 or more")
	}
	s, err := newStage(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	r := report{Command: strings.Join(os.Args, " "), Go: runtime.Version(), Processors: runtime.NumCPU()}
	for _, scenario := range scenarios() {
		if !wanted.MatchString(scenario.name) {
			continue
		}
		fmt.Fprintf(progress, "%s ...\n", scenario.name)
		figures, err := scenario.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		r.Scenarios = append(r.Scenarios, figures...)
	}
	if err := r.write(out, o.jsonFile); err != nil {
		return err
	}
	for _, f := range r.Scenarios {
		if f.Wrong+f.Failed > 0 || f.Undecided > 0 && !f.expected {
			return fmt.Errorf("%s: %w", f.Name, errWrong)
		}
	}
	return nil
}

func (r report) write(out io.Writer, file string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tREQUESTS\tPER SECOND\tP50\tP99\tMAX\tUNDECIDED\tFAILED\tWRONG\tREMARK")
	for _, f := range r.Scenarios {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.2f ms\t%.2f ms\t%.2f ms\t%d\t%d\t%d\t%s\n",
			f.Name, f.Requests, f.PerSecond, f.P50, f.P99, f.Max, f.Undecided, f.Failed, f.Wrong, f.Remark)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
