package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

func errPrivate(wanted string) error {
	return errors.New("found a private key, want " + wanted + "; remove the private key from here and consider it compromised")
}

const begin = "-----BEGIN "

// decode splits data into PEM blocks (RFC 7468). It ignores explanatory text outside of them (section 2, "Data
// before the encapsulation boundary are permitted"), a byte order mark, and EC PARAMETERS, which OpenSSL writes before a
// key. It refuses text that looks like a key or like a damaged block: a parser that ignored it would also ignore the
// key that somebody meant.
func decode(data []byte, wanted string, maxBytes, maxBlocks int) ([]*pem.Block, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("found %d bytes, want at most %d", len(data), maxBytes)
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, errors.New("found UTF-16, want " + wanted + " in ASCII or UTF-8; save the file again")
	}
	var blocks []*pem.Block
	for rest := trimmed(data); ; {
		number := len(blocks) + 1
		text, block := explanation(rest)
		if found := offends(text); found == private {
			return nil, errPrivate(wanted)
		} else if found != "" {
			return nil, fmt.Errorf("found %s outside of the PEM blocks, want %s", found, wanted)
		}
		if len(block) == 0 {
			break
		}
		if number > maxBlocks {
			return nil, fmt.Errorf("found more than %d PEM blocks, want at most %d", maxBlocks, maxBlocks)
		}
		first, _, _ := bytes.Cut(block, []byte("\n"))
		if bytes.Contains(first, []byte("PRIVATE KEY")) {
			return nil, errPrivate(wanted)
		}
		decoded, after := pem.Decode(block)
		if decoded == nil && bytes.Contains(first, []byte(`\n`)) {
			return nil, fmt.Errorf(`PEM block %d has \n as text instead of line ends, want %s`, number, wanted)
		}
		if decoded == nil {
			return nil, fmt.Errorf("PEM block %d is damaged or cut off, want %s", number, wanted)
		}
		// pem.Decode skips a damaged block if a good one follows.
		if bytes.Count(block[:len(block)-len(after)], []byte(begin)) != 1 {
			return nil, fmt.Errorf("PEM block %d is damaged, want %s", number, wanted)
		}
		if rest = after; decoded.Type != parameters {
			blocks = append(blocks, decoded)
		}
	}
	if len(blocks) == 0 {
		if len(bytes.TrimSpace(data)) > 0 {
			return nil, errors.New("found text without a PEM block, want " + wanted)
		}
		return nil, errors.New("found nothing, want " + wanted)
	}
	return blocks, nil
}

// explanation splits data before the first line that begins a PEM block.
func explanation(data []byte) (text, block []byte) {
	for at := 0; at < len(data); {
		found := bytes.Index(data[at:], []byte(begin))
		if found < 0 {
			break
		}
		line := len(bytes.TrimRight(data[at:at+found], " \t\r")) + at
		if line == 0 || data[line-1] == '\n' {
			return data[:line], data[at+found:]
		}
		at += found + len(begin)
	}
	return data, nil
}

// Blocks returns the PEM blocks of text as the functions of this package see them, with any content. It skips blocks
// that they refuse.
func Blocks(text []byte) (blocks []*pem.Block) {
	for rest := trimmed(text); ; {
		_, block := explanation(rest)
		if len(block) == 0 {
			return blocks
		}
		decoded, after := pem.Decode(block)
		if decoded == nil {
			return blocks
		}
		if rest = after; decoded.Type != parameters {
			blocks = append(blocks, decoded)
		}
	}
}

// parameters is the type of a block that OpenSSL writes before a key.
const parameters = "EC PARAMETERS"

// trimmed returns data without a byte order mark.
func trimmed(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// ssh matches a line of an SSH public key (RFC 4253 section 6.6, RFC 4716 section 3.2), bare the Base64 lines of a
// block, and boundary a line that was probably meant as the first or last line of one, without its surroundings.
var (
	ssh      = regexp.MustCompile(`^(ssh-|ecdsa-sha2-|sk-)[a-z0-9@.-]+ |^---- BEGIN SSH2 `)
	bare     = regexp.MustCompile(`^[A-Za-z0-9+/_-]{40,}={0,2}$`)
	boundary = regexp.MustCompile(`(?i)^(BEGIN|END) [A-Z0-9 ]*(KEY|CERTIFICATE|CRL|LIST)$`)
)

// private is what [offends] returns for keys that must be considered lost.
const private = "a private key"

// offends names the part of explanatory text that looks like a key or like a part of a PEM block, "" if there is
// none. A block that is quoted, indented or in a field of another format was still meant as one. Lines that begin
// with "#" are comments.
func offends(text []byte) string {
	if bytes.IndexByte(text, 0) >= 0 || len(text) > 1 && text[0] == 0x30 && text[1] >= 0x80 {
		return "binary data (DER, say)"
	}
	if bytes.Contains(text, []byte(`"kty"`)) {
		if bytes.Contains(text, []byte(`"d"`)) {
			return private
		}
		return "a JSON Web Key"
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		core := strings.TrimFunc(line, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '/' && r != '='
		})
		isBoundary := strings.Contains(line, "-----BEGIN ") || strings.Contains(line, "-----END ") || boundary.MatchString(core)
		switch {
		case strings.HasPrefix(line, "#"):
		case ssh.MatchString(line):
			return "an SSH key (convert it with ssh-keygen -e -m PKCS8 -f FILE)"
		case isBoundary && strings.Contains(line, "PRIVATE"):
			return private
		case isBoundary:
			return "a damaged beginning or end of a PEM block"
		case strings.HasPrefix(core, "LS0tLS1"): // -----
			return "PEM that is encoded in Base64 once more"
		case bare.MatchString(core):
			return "Base64 without the lines BEGIN and END"
		}
	}
	return ""
}
