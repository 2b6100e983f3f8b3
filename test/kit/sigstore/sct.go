package sigstore

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
)

// Forged is an SCT that names the first log and has no valid signature.
const Forged = -1

// transparent is a CA that submits its certificates to certificate
// transparency logs. The virtual instance has none.
type transparent struct {
	root, issuing *x509.Certificate
	key           *ecdsa.PrivateKey
	logs          []*ecdsa.PrivateKey
}

func newTransparent() (*transparent, error) {
	rootCertificate, rootKey, err := ca.GenerateRootCa()
	if err != nil {
		return nil, fmt.Errorf("make a root: %w", err)
	}
	t := &transparent{root: rootCertificate}
	if t.issuing, t.key, err = ca.GenerateFulcioIntermediate(rootCertificate, rootKey); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	for range 2 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make a log's key: %w", err)
		}
		t.logs = append(t.logs, key)
	}
	return t, nil
}

func (t *transparent) authority() root.CertificateAuthority {
	return &root.FulcioCertificateAuthority{Root: t.root, Intermediates: []*x509.Certificate{t.issuing},
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour)}
}

func idOf(log *ecdsa.PrivateKey) ([sha256.Size]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&log.PublicKey)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode a log's key: %w", err)
	}
	return sha256.Sum256(der), nil
}

// trusted adds the logs to those of a trusted root.
func (t *transparent) trusted(logs map[string]*root.TransparencyLog) error {
	for _, log := range t.logs {
		id, err := idOf(log)
		if err != nil {
			return err
		}
		logs[hex.EncodeToString(id[:])] = &root.TransparencyLog{BaseURL: "https://ct.example.com", ID: id[:], HashFunc: crypto.SHA256,
			SignatureHashFunc: crypto.SHA256, PublicKey: &log.PublicKey, ValidityPeriodStart: time.Now().Add(-time.Hour)}
	}
	return nil
}

// issue makes a certificate for identity with SCTs of the logs with the given numbers.
func (t *transparent) issue(identity, issuer string, scts []int) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{SerialNumber: serial, EmailAddresses: []string{identity}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}}}
	bare, err := t.sign(template, &key.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	// The list is the last extension, so that removing it yields the precertificate.
	list, err := t.timestamps(bare, scts)
	if err != nil {
		return nil, nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, list)
	made, err := t.sign(template, &key.PublicKey)
	return made, key, err
}

func (t *transparent) sign(template *x509.Certificate, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, t.issuing, key, t.key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// timestamps returns the extension with SCTs for a certificate (RFC 6962 sections 3.2
// and 3.3).
func (t *transparent) timestamps(bare *x509.Certificate, logs []int) (pkix.Extension, error) {
	var scts []*ct.SignedCertificateTimestamp
	at := uint64(time.Now().UnixMilli())
	for _, number := range logs {
		id, err := idOf(t.logs[max(number, 0)])
		if err != nil {
			return pkix.Extension{}, err
		}
		sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: at}
		signed, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
			TimestampedEntry: &ct.TimestampedEntry{Timestamp: at, EntryType: ct.PrecertLogEntryType,
				PrecertEntry: &ct.PreCert{IssuerKeyHash: sha256.Sum256(t.issuing.RawSubjectPublicKeyInfo), TBSCertificate: bare.RawTBSCertificate}}}})
		if err != nil {
			return pkix.Extension{}, fmt.Errorf("write an SCT: %w", err)
		}
		key := t.key // of an unknown log
		if number != Forged {
			key = t.logs[number]
		}
		signature, err := cttls.CreateSignature(*key, cttls.SHA256, signed)
		if err != nil {
			return pkix.Extension{}, fmt.Errorf("sign an SCT: %w", err)
		}
		sct.Signature = ct.DigitallySigned(signature)
		scts = append(scts, &sct)
	}
	list, err := x509util.MarshalSCTsIntoSCTList(scts)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("write a list of SCTs: %w", err)
	}
	raw, err := cttls.Marshal(*list)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("write a list of SCTs: %w", err)
	}
	value, err := asn1.Marshal(raw)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("write a list of SCTs: %w", err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, nil
}

// attest signs a statement with a certificate that has SCTs, logged and
// timestamped by the virtual instance.
func (s *Sigstore) attest(identity, issuer string, statement []byte, options SignOptions) (*entity, []byte, error) {
	certificate, key, err := s.transparent.issue(identity, issuer, options.SCTs)
	if err != nil {
		return nil, nil, err
	}
	signer, err := signature.LoadECDSASigner(key, crypto.SHA256)
	if err != nil {
		return nil, nil, fmt.Errorf("use the key: %w", err)
	}
	enveloper, err := dsse.NewEnvelopeSigner(&sigdsse.SignerAdapter{SignatureSigner: signer, Pub: &key.PublicKey})
	if err != nil {
		return nil, nil, fmt.Errorf("make an envelope: %w", err)
	}
	envelope, err := enveloper.SignPayload(context.Background(), "application/vnd.in-toto+json", statement)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the envelope: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	if err != nil {
		return nil, nil, fmt.Errorf("read the envelope: %w", err)
	}
	timestamp, err := s.virtual.TimestampResponse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("timestamp: %w", err)
	}
	entry, err := s.virtual.GenerateTlogEntry(certificate, envelope, raw, options.time().Unix(), true)
	if err != nil {
		return nil, nil, fmt.Errorf("log: %w", err)
	}
	e := &entity{certificate: certificate.Raw, timestamps: [][]byte{timestamp}, entry: entry.TransparencyLogEntry()}
	return e, raw, s.complete(e.entry)
}
