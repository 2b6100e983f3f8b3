package policy

import "errors"

// Remedy is a word for how to repair a registry that does not answer as it should. Replicas only send each other
// the word: anyone who can write Events could forge advice, but not the text for a word.
type Remedy string

// The remedies. The zero value says nothing.
const (
	RemedyNoSuchHost        Remedy = "NoSuchHost"        // DNS says that there is no such host
	RemedyDNS               Remedy = "DNS"               // DNS does not say where the host is
	RemedyTrustCA           Remedy = "TrustCA"           // the CA of the certificate is unknown
	RemedyOtherName         Remedy = "OtherName"         // the certificate is for another host
	RemedyRenew             Remedy = "Renew"             // the certificate has expired, or is not valid yet
	RemedyReissue           Remedy = "Reissue"           // the certificate is not trusted for another reason
	RemedyClientCertificate Remedy = "ClientCertificate" // the host asks for another client certificate
	RemedyServeTLS          Remedy = "ServeTLS"          // the host speaks plain HTTP
	RemedyStart             Remedy = "Start"             // nothing listens
	RemedyAnswer            Remedy = "Answer"            // the host is silent
)

// At returns what to do about a host, as one clause. It is empty for an unknown word.
func (r Remedy) At(host string) string {
	switch r {
	case RemedyNoSuchHost:
		return "check that " + host + " is spelt right; if it is, correct the DNS that Landwaiter's pods use"
	case RemedyDNS:
		return "correct the DNS that Landwaiter's pods use"
	case RemedyTrustCA:
		return "add the CA to caBundle of the Store that lists " + host
	case RemedyOtherName:
		return "have a certificate issued for " + host
	case RemedyRenew:
		return "renew the certificate of " + host
	case RemedyReissue:
		return "have the certificate of " + host + " issued again"
	case RemedyClientCertificate:
		return "set clientCertificate of the Store that lists " + host
	case RemedyServeTLS:
		return "serve " + host + " with TLS, or ask a cluster admin to set insecurePlainHTTP in a ClusterStore that lists it"
	case RemedyStart:
		return "start the registry, or correct the port in its name"
	case RemedyAnswer:
		return Answers(host)
	}
	return ""
}

// Outside returns what to do about a resource that is unusable because of an external cause: nothing, unless it
// lasts.
func Outside(ifItLasts string) string {
	return "nothing in the resource needs correcting: Landwaiter tries again by itself; if it lasts, " + ifItLasts
}

// OutsideOf returns the advice of an error with an external cause, "" for other errors.
func OutsideOf(err error) string {
	var caused interface{ Outside() string }
	if !errors.As(err, &caused) {
		return ""
	}
	return caused.Outside()
}

// Answers returns what to do if a server does not answer for a long time.
func Answers(server string) string {
	return "check that " + server + " answers, and that Landwaiter's pods can reach it"
}
