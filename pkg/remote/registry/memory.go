package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// errMemory is transient: other answers of the account may have been read by then.
var errMemory = errors.New("overloaded: too many large answers are being read")

// hold returns the memory that the account uses for one answer.
func (s *session) hold() *fair.Hold[verify.Account] {
	return s.client.memory.Hold(s.access.account())
}

// heldBody takes memory for what is read, until it is closed.
type heldBody struct {
	io.ReadCloser
	memory *fair.Hold[verify.Account]
}

// Read implements [io.Reader].
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.memory.Take(int64(n)) {
		return 0, errMemory
	}
	return n, err
}

// Close implements [io.Closer].
func (b *heldBody) Close() error {
	b.memory.Release()
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
	list := &list{body: resp.Body, memory: l.session.hold()}
	if err := list.read(); err != nil {
		return nil, errors.Join(err, list.Close())
	}
	resp.Body = list
	return resp, nil
}

// list is a list of referrers that has been read, and has memory to be decoded.
type list struct {
	bytes.Reader
	body   io.ReadCloser
	memory *fair.Hold[verify.Account]
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
	if !l.memory.Take(decodedListBytes * int64(len(content))) {
		return errMemory
	}
	l.Reset(content)
	return nil
}

// Close implements [io.Closer].
func (l *list) Close() error {
	l.memory.Release()
	return l.body.Close()
}
