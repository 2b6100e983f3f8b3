package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// table asks every question twice and prints the answers. It returns an error if
// any verdict is not the expected one.
func table(ctx context.Context, out io.Writer, client *gatekeeper.Client, questions []example.Question) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nVERDICT\tNAMESPACE\tCOLD\tWARM\tWHAT\tKEY\tWHY")
	wrong := 0
	for _, q := range questions {
		verdict, why, cold, err := ask(ctx, client, q.Key)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", q.Key, err)
		}
		again, _, warm, err := ask(ctx, client, q.Key)
		if err != nil {
			return fmt.Errorf("ask again for %s: %w", q.Key, err)
		}
		shown := string(verdict)
		if verdict != q.Want || again != q.Want {
			wrong++
			shown = fmt.Sprintf("%s then %s, expected %s", verdict, again, q.Want)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shown, q.Namespace(), cold.Round(10*time.Microsecond),
			warm.Round(10*time.Microsecond), q.Title, shortKey(q.Key), why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d verdicts were not the expected ones", wrong)
	}
	return nil
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

// shortKey shortens the digest of a key to what a person compares.
func shortKey(key string) string {
	name, digest, found := strings.Cut(key, "@")
	if !found {
		return key
	}
	return name + "@" + digest[:min(len(digest), 19)] + "…"
}
