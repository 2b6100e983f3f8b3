package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// width is the number of columns that the output stays within.
const width = 120

// printer writes verdicts for people.
type printer struct {
	out io.Writer
	// colour marks verdicts in green and red.
	colour bool
}

// forTerminals returns a printer with colours if out is a terminal and nobody asked for
// none (https://no-color.org).
func forTerminals(out io.Writer) printer {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return printer{out: out}
	}
	info, err := file.Stat()
	return printer{out: out, colour: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// verdict returns the word for a verdict, padded to the width of its column.
func (p printer) verdict(verdict gatekeeper.Verdict) string {
	word := fmt.Sprintf("%-7s", verdict)
	switch {
	case !p.colour:
		return word
	case verdict == gatekeeper.Allowed:
		return "\x1b[32m" + word + "\x1b[0m"
	default:
		return "\x1b[31m" + word + "\x1b[0m"
	}
}

// wrapped writes text in lines that begin with indent.
func (p printer) wrapped(indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && len(line)+1+len(word) > width {
			fmt.Fprintln(p.out, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(p.out, line)
}

// answer is what came of a question that was asked twice.
type answer struct {
	example.Question
	first, second gatekeeper.Verdict
	why           string
	cold, warm    time.Duration
}

func (a answer) expected() bool { return a.first == a.Want && a.second == a.Want }

// askAll asks every question twice.
func askAll(ctx context.Context, client *gatekeeper.Client, questions []example.Question) ([]answer, error) {
	answers := make([]answer, 0, len(questions))
	for _, q := range questions {
		a := answer{Question: q}
		var err error
		if a.first, a.why, a.cold, err = ask(ctx, client, q.Key); err != nil {
			return nil, fmt.Errorf("ask for %s: %w", q.Key, err)
		}
		if a.second, _, a.warm, err = ask(ctx, client, q.Key); err != nil {
			return nil, fmt.Errorf("ask again for %s: %w", q.Key, err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// story tells what the first two answers show: one image, two teams, two verdicts.
func (p printer) story(answers []answer) {
	if len(answers) < 2 {
		return
	}
	fmt.Fprintf(p.out, "\nThe same image, two teams, two verdicts: %s is signed with team-a's key.\n", imageOf(answers[0].Key))
	for _, a := range answers[:2] {
		fmt.Fprintf(p.out, "\n  %s in %s, because\n", p.verdict(a.first), a.Namespace())
		p.wrapped("          ", a.why)
	}
}

// table writes all answers. It returns an error if any verdict is not the expected one.
func (p printer) table(answers []answer) error {
	fmt.Fprintf(p.out, "\nAll verdicts. The first time is with requests to the registry, the second from memory:\n\n%-7s  %-9s  %-30s  %-44s  %7s  %7s\n",
		"VERDICT", "NAMESPACE", "IMAGE", "WHAT", "COLD", "WARM")
	wrong := 0
	for _, a := range answers {
		fmt.Fprintf(p.out, "%s  %-9s  %-30s  %-44s  %7s  %7s\n", p.verdict(a.first), a.Namespace(), imageOf(a.Key), a.Title,
			rounded(a.cold), rounded(a.warm))
		if !a.expected() {
			wrong++
			fmt.Fprintf(p.out, "         %s then %s, expected %s\n", a.first, a.second, a.Want)
		}
	}
	fmt.Fprintln(p.out, "\nWhy:")
	seen := map[string]bool{}
	for _, a := range answers {
		if seen[a.Key] || a.first == gatekeeper.Allowed {
			continue
		}
		seen[a.Key] = true
		fmt.Fprintf(p.out, "\n  %s in %s\n", imageOf(a.Key), a.Namespace())
		p.wrapped("    ", a.why)
	}
	if wrong > 0 {
		return fmt.Errorf("%d verdicts were not the expected ones", wrong)
	}
	return nil
}

func rounded(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

// imageOf returns the image of a key without namespace and registry, and with a digest as
// short as a person compares.
func imageOf(key string) string {
	tag := ""
	name := strings.TrimPrefix(key, "["+example.Question{Key: key}.Namespace()+"]")
	if inner, rest, found := strings.Cut(name, "]"); found { // the image string brings a tag of its own
		tag, name = inner+"]", rest
	}
	if _, path, found := strings.Cut(name, "/"); found {
		name = path
	}
	name = tag + name
	if name, digest, found := strings.Cut(name, "@"); found {
		return name + "@" + digest[:min(len(digest), 12)] + "…"
	}
	return name
}

// ask sends one key and judges the answer as a ConstraintTemplate does.
func ask(ctx context.Context, client *gatekeeper.Client, key string) (verdict gatekeeper.Verdict, why string, took time.Duration, err error) {
	began := time.Now()
	response, err := client.Ask(ctx, gatekeeper.VerifyPath, key)
	took = time.Since(began)
	switch {
	case err != nil:
		return "", "", took, err
	case response.SystemError != "":
		return "", "", took, errors.New("system error: " + response.SystemError)
	case len(response.Items) != 1 || response.Items[0].Key != key:
		return "", "", took, fmt.Errorf("asked for 1 key, answered for %d", len(response.Items))
	}
	verdict, why = gatekeeper.Judge(response.Items[0])
	return verdict, why, took, nil
}
