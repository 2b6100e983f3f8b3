package external

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// ask sends a request and reads the answer, which is JSON.
func ask(client *egress.Client, who string, r *http.Request, into any) error {
	status, body, err := client.Read(r)
	if err := refused(who, status, err); err != nil {
		return err
	}
	if json.Unmarshal(body, into) != nil {
		return problemf("the answer of %s is malformed", who)
	}
	return nil
}

// refused returns an error unless the answer is the one that was asked for.
func refused(who string, status int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("ask %s: %w", who, err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && strings.HasSuffix(who, tokens):
		return problemf("%s refuses the credentials (%d)", who, status)
	case status == http.StatusNotFound:
		return problemf("%s has nothing of that name (404)", who)
	case status != http.StatusOK && status != http.StatusCreated:
		return answered(who, status)
	}
	return nil
}

// postJSON sends a document, with a bearer token unless it is empty.
func postJSON(ctx context.Context, client *egress.Client, who, address, token string, header http.Header, document, into any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return problem("the request cannot be written")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return problem("the address is malformed")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(client, who, r, into)
}

// tokens ends the name of a server that answers 400 to wrong credentials (RFC 6749
// section 5.2).
const tokens = "token server"
