package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/landwaiter/landwaiter/pkg/fair"
	"github.com/landwaiter/landwaiter/pkg/intake"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// errMemory is transient: other answers of the account may have been read by then.
var errMemory = errors.New("overloaded: too many large answers are being read")

// held is the memory that an account uses for one answer.
type held struct {
	memory  *fair.Gate[verify.Account]
	account verify.Account
	bytes   int64
}

func (s *session) held() held { return held{memory: s.client.memory, account: s.access.account()} }

func (h *held) take(n int) error {
	if !h.memory.Take(h.account, int64(n), 0) {
		return errMemory
	}
	h.bytes += int64(n)
	return nil
}

func (h *held) release() {
	h.memory.Return(h.account, h.bytes)
	h.bytes = 0
}

// heldBody takes memory for what is read, until it is closed.
type heldBody struct {
	io.ReadCloser
	held
}

// Read implements [io.Reader].
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if full := b.take(n); full != nil {
		return 0, full
	}
	return n, err
}

// Close implements [io.Closer].
func (b *heldBody) Close() error {
	b.release()
	return b.ReadCloser.Close()
}

// lists reads lists of referrers before oras-go decodes them, since a short text can stand
// for many descriptors. It also counts them: its requests come one after the other.
type lists struct {
	remote.Client
	session *session
	pages   int
}

// Do implements [remote.Client].
func (l *lists) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.Client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	stated := resp.Header.Get("Content-Type")
	// oras-go decodes the fallback tag if this is an index, and a page of the API only if
	// the header is nothing else.
	mediaType, _, err := mime.ParseMediaType(stated)
	if err != nil || !intake.IsIndex(mediaType) {
		return resp, nil //nolint:nilerr // oras-go refuses it undecoded
	}
	if intake.IsIndex(stated) {
		l.pages++
	}
	list := &list{body: resp.Body, held: l.session.held()}
	if err := list.read(); err != nil {
		return nil, errors.Join(err, list.Close())
	}
	resp.Body = list
	return resp, nil
}

// list is a list of referrers that has been read, and has memory to be decoded.
type list struct {
	bytes.Reader
	body io.ReadCloser
	held
}

func (l *list) read() error {
	content, err := io.ReadAll(l.body) // guard bounds it
	if err != nil {
		return err
	}
	switch err := intake.List(content); {
	case intake.IsLimit(err):
		return verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the list of referrers %w", err))
	case err != nil:
		return fmt.Errorf("the list of referrers %w", err)
	}
	l.Reset(content)
	return l.take(decodedListBytes * len(content))
}

// Close implements [io.Closer].
func (l *list) Close() error {
	l.release()
	return l.body.Close()
}
