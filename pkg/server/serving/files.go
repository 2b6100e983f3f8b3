package serving

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// pair is a certificate with its intermediates and its key, in PEM.
type pair struct{ certificate, key []byte }

func (p pair) equal(other pair) bool {
	return bytes.Equal(p.certificate, other.certificate) && bytes.Equal(p.key, other.key)
}

// pairReader returns the pair to serve, and when it has to be read again even if
// nobody announces a change; zero for never.
type pairReader func(now time.Time) (pair, time.Time, error)

// caReader is a pairReader for CAs in PEM.
type caReader func(now time.Time) ([]byte, time.Time, error)

// pairFromFiles reads files again after interval. It polls, because a mounted
// Secret is a chain of symbolic links that are swapped, which file notifications
// miss in some forms.
func pairFromFiles(certificate, key string, interval time.Duration) pairReader {
	return func(now time.Time) (p pair, again time.Time, err error) {
		again = now.Add(interval)
		if p.certificate, err = readFile(certificate); err != nil {
			return p, again, err
		}
		p.key, err = readFile(key)
		return p, again, err
	}
}

// caFromFile reads a file again after interval.
func caFromFile(name string, interval time.Duration) caReader {
	return func(now time.Time) ([]byte, time.Time, error) {
		content, err := readFile(name)
		return content, now.Add(interval), err
	}
}

func readFile(name string) (content []byte, err error) {
	file, err := os.Open(name) //nolint:gosec // the path is an operator's setting
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read certificate file: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("read certificate file %s: it is larger than %d bytes", name, maxFileBytes)
	}
	return content, nil
}
