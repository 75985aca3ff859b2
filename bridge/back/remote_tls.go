package back

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// trust makes the settings of TLS from what is configured (case 93).
func (cfg *RemoteConfig) trust() (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: cfg.Insecure, MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use the setting caFile: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil { // some systems have none
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use the setting caFile: %s holds no certificate in PEM form", cfg.CAFile)
		}
	}
	if cfg.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.ClientCert, cfg.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("cannot use the settings clientCert and clientKey: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// explainTLS says what to do about a certificate that is not trusted.
func explainTLS(err error) error {
	bad, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return err
	}
	issuer := ""
	if len(bad.UnverifiedCertificates) > 0 {
		issuer = fmt.Sprintf(", issued by %q", bad.UnverifiedCertificates[0].Issuer)
	}
	return fmt.Errorf("the server's certificate%s is not trusted: %w; if it is meant, name its authority's file with the setting caFile", issuer, bad.Err)
}
