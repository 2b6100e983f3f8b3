// Package trust parses the keys, certificates and Sigstore roots that signatures are
// verified with. It takes a source as a whole or not at all: it refuses private keys,
// weak or unknown keys, and text that is not one of the wanted PEM blocks, so that a
// mistake in trust material shows when it is made and not when an image is denied. It
// does no I/O.
package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// block is a PEM block with its number in the source, counted from 1, for messages.
type block struct {
	*pem.Block
	number int
}

// decode splits data into PEM blocks (RFC 7468). It refuses any other text except
// comment lines: a parser that skips text it does not understand would also skip a
// damaged key.
func decode(data []byte, wanted string, maxBytes, maxBlocks int) ([]block, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("found %d bytes, want at most %d", len(data), maxBytes)
	}
	var blocks []block
	for rest := skipComments(data); len(rest) > 0; {
		number := len(blocks) + 1
		if number > maxBlocks {
			return nil, fmt.Errorf("found more than %d PEM blocks, want at most %d", maxBlocks, maxBlocks)
		}
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			return nil, fmt.Errorf("found text that is not PEM before block %d, want only %s", number, wanted)
		}
		decoded, after := pem.Decode(rest)
		if decoded == nil {
			return nil, fmt.Errorf("PEM block %d is damaged or cut off, want %s", number, wanted)
		}
		// pem.Decode skips a damaged block if a good one follows.
		if bytes.Count(rest[:len(rest)-len(after)], []byte("-----BEGIN ")) != 1 {
			return nil, fmt.Errorf("PEM block %d is damaged, want %s", number, wanted)
		}
		if strings.Contains(decoded.Type, "PRIVATE KEY") {
			return nil, errors.New("found a private key, want " + wanted + "; remove the private key from here and consider it compromised")
		}
		blocks = append(blocks, block{Block: decoded, number: number})
		rest = skipComments(after)
	}
	if len(blocks) == 0 {
		return nil, errors.New("found nothing, want " + wanted)
	}
	return blocks, nil
}

// skipComments skips white space and lines that begin with "#", with which people and
// tools label the next block.
func skipComments(data []byte) []byte {
	for {
		data = bytes.TrimSpace(data)
		if !bytes.HasPrefix(data, []byte("#")) {
			return data
		}
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
}
