package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/prefetch"
)

// AWSSignature identifies a verified signature of AWS Signer to its API.
type AWSSignature struct {
	// Region is the region of the signing profile.
	Region, ProfileVersion, Job string
	// Certificates has the hash of each certificate combined with the hash of its issuer.
	Certificates []string
	SignedAt     time.Time
}

// RevokedOf returns the revoked ARNs and certificate hashes of a signature, nil if there are
// none. It answers from fetched data. Its error says that there is no answer yet, or why
// there is none.
type RevokedOf func(ctx context.Context, signature AWSSignature) ([]string, error)

// awsQuestion is one signature that a namespace asks about. It is comparable, and namespaces
// share no answers.
type awsQuestion struct {
	namespace                                           verify.Namespace
	as                                                  Identity
	region, profileVersion, job, certificates, signedAt string
}

type awsAnswer = prefetch.Fetched[[]string]

// awsAnswers returns the set of questions, which it asks while it runs.
func (f *Fetcher) awsAnswers(ask func(context.Context, awsQuestion) ([]string, error)) *prefetch.Set[verify.Account,
	awsQuestion, awsAnswer] {
	poll := prefetch.Poll(func(ctx context.Context, q awsQuestion) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		revoked, err := ask(ctx, q)
		if err != nil {
			return nil, shown(err)
		}
		return revoked, nil
	}, f.now, prefetch.PollOptions[verify.Account, awsQuestion]{
		Refresh: func(awsQuestion) time.Duration { return awsSignerRefresh }, FirstRetry: firstRetry, LastRetry: lastRetry,
		MaxFetches: maxFetches, MaxFetchesPerOwner: maxFetchesEach,
		Owner: func(q awsQuestion) verify.Account { return f.options.Account(q.namespace) },
		Apart: func(account verify.Account) bool { return account == verify.Cluster.Account() },
	})
	return prefetch.New[verify.Account](poll, f.now,
		prefetch.Options[awsAnswer]{MaxKeys: maxSignatures, MaxPending: maxSignaturesPending, Idle: awsSignerIdle})
}

// errNotAskedAgain means that an answer waits for its turn to be refreshed.
var errNotAskedAgain = errors.New("AWS Signer was not asked again in time")

// AWSSigner returns the revocations of signatures for one namespace. It queries AWS Signer
// with the identity that a trust store names.
func (f *Fetcher) AWSSigner(namespace verify.Namespace, as Identity) RevokedOf {
	return func(ctx context.Context, s AWSSignature) ([]string, error) {
		q := awsQuestion{namespace: namespace, as: as, region: s.Region, profileVersion: s.ProfileVersion, job: s.Job,
			certificates: strings.Join(s.Certificates, ","), signedAt: s.SignedAt.UTC().Format(time.RFC3339)}
		account := f.options.Account(namespace)
		if err := f.signatures.Add(account, q); err != nil {
			return nil, fmt.Errorf("too many signatures of %s are being asked about, try again", account.Describe())
		}
		if f.options.Wait {
			f.signatures.Await(ctx, q)
		}
		known, err := f.signatures.Known(q)
		switch {
		case errors.Is(err, prefetch.ErrPending):
			return nil, errors.New("AWS Signer is being asked, try again")
		case errors.Is(err, prefetch.ErrNotWanted):
			return nil, errors.New("the answer of AWS Signer was dropped to make room, try again")
		case err != nil:
			return nil, err
		case known.At.IsZero():
			return nil, known.Err
		case f.now().Sub(known.At) > awsSignerKeep:
			return nil, fmt.Errorf("the answer of %s is too old: %w", known.At.UTC().Format(time.RFC3339), cmp.Or(known.Err, errNotAskedAgain))
		}
		return known.Value, nil
	}
}

// Forget drops the answers for a namespace.
func (f *Fetcher) Forget(namespace verify.Namespace) {
	f.signatures.Drop(func(q awsQuestion) bool { return q.namespace == namespace })
}
