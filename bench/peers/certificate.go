package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

// makeCertificate makes a key and a certificate of P-256 for the site's host, in memory.
func (s *site) makeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(s.setup.Host)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if s.cert, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		return err
	}
	s.tls = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{s.cert}, PrivateKey: key}},
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.DidResume {
				s.resumed.Add(1)
			}
			return nil
		},
	}
	return nil
}

// clientTLS trusts the certificate alone; nil if there is none.
func clientTLS(cert []byte) (*tls.Config, error) {
	if cert == nil {
		return nil, nil
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{RootCAs: pool}, nil
}
