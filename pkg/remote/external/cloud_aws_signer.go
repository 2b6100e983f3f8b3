//go:build aws

package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// KnowsAWS reports whether this build can ask AWS.
func KnowsAWS() bool { return true }

// notationPlatform is the platform of all signatures of container images.
const notationPlatform = "Notation-OCI-SHA384-ECDSA"

// askAWSSigner asks for the revocation status of one signature (GetRevocationStatus of the
// AWS Signer API, 2017-08-25). The host follows from the region.
func (n network) askAWSSigner(ctx context.Context, q awsQuestion) ([]string, error) {
	if !isRegion(q.region) {
		return nil, problemf("%.64q is not a region of AWS", q.region)
	}
	own, err := n.awsConfig(ctx, q.as, q.region)
	if err != nil {
		return nil, err
	}
	host := "data-signer." + q.region + "." + awsDomain(q.region)
	client, err := n.to(ctx, "", host)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	query := url.Values{"certificateHashes": strings.Split(q.certificates, ","), "jobArn": {q.job}, "platformId": {notationPlatform},
		"profileVersionArn": {q.profileVersion}, "signatureTimestamp": {q.signedAt}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/revocations?"+query.Encode(), nil)
	if err != nil {
		return nil, problem("the address is malformed")
	}
	held, err := own.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, awsError("AWS", err)
	}
	empty := sha256.Sum256(nil)
	if err := v4.NewSigner().SignHTTP(ctx, held, r, hex.EncodeToString(empty[:]), "signer", q.region, time.Now()); err != nil {
		return nil, problem("the request to AWS Signer cannot be signed")
	}
	status, body, err := client.Read(r)
	var answer struct {
		RevokedEntities []string `json:"revokedEntities"`
	}
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return nil, problemf("AWS Signer refuses the credentials, or they lack the permission signer:GetRevocationStatus (%d)", status)
	case status != http.StatusOK:
		return nil, answered("AWS Signer", status)
	case json.Unmarshal(body, &answer) != nil || !strings.HasPrefix(strings.TrimSpace(string(body)), "{"):
		return nil, problem("the answer of AWS Signer is malformed")
	}
	return answer.RevokedEntities, nil
}
