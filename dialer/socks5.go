package dialer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// socks5 makes the SOCKS5 proxy at the other end of c connect us to address (RFC 1928).
// It logs in as user if the proxy asks for a login (RFC 1929). It reads no byte too many.
func socks5(c io.ReadWriter, user *url.Userinfo, address string) error {
	target, err := socks5Address(address)
	if err != nil {
		return err
	}
	methods := []byte{5, 1, 0} // version, their number, no login
	if user != nil {
		methods = []byte{5, 2, 0, 2} // or user and password
	}
	chosen, err := ask(c, methods, 2)
	switch {
	case err != nil:
		return err
	case chosen[0] != 5:
		return newSlowError("is no SOCKS5 proxy")
	case chosen[1] == 0:
	case chosen[1] == 2 && user != nil:
		if err := socks5Login(c, user); err != nil {
			return err
		}
	default:
		return newSlowError("login refused: no method of ours is acceptable")
	}
	reply, err := ask(c, append([]byte{5, 1, 0}, target...), 4) // version, CONNECT, reserved
	switch {
	case err != nil:
		return err
	case reply[0] != 5:
		return newSlowError("is no SOCKS5 proxy")
	case reply[1] != 0:
		return cmp.Or(socks5Replies[reply[1]], fmt.Errorf("unknown reply %d", reply[1]))
	}
	return skipAddress(c, reply[3])
}

// ask writes a request and reads an answer of n bytes.
func ask(c io.ReadWriter, request []byte, n int) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(c, answer)
	return answer, err
}

func socks5Login(c io.ReadWriter, user *url.Userinfo) error {
	name := user.Username()
	password, _ := user.Password()
	if name == "" || len(name) > 255 || len(password) > 255 {
		return newSlowError("takes a login of 1 to 255 bytes with a password of at most 255")
	}
	login := append([]byte{1, byte(len(name))}, name...) // 1 is the version of the login
	login = append(append(login, byte(len(password))), password...)
	answer, err := ask(c, login, 2)
	if err == nil && answer[1] != 0 {
		return newSlowError("login refused")
	}
	return err
}

// The types of address.
const (
	socks5IPv4 = 1
	socks5Name = 3
	socks5IPv6 = 4
)

// socks5Address returns address in the form of RFC 1928, section 5.
func socks5Address(address string) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	var b []byte
	switch ip, err := netip.ParseAddr(host); {
	case err == nil && ip.Unmap().Is4():
		b = append([]byte{socks5IPv4}, ip.Unmap().AsSlice()...)
	case err == nil:
		b = append([]byte{socks5IPv6}, ip.AsSlice()...)
	case len(host) > 255:
		return nil, newSlowError("takes no host name of more than 255 bytes")
	default:
		b = append([]byte{socks5Name, byte(len(host))}, host...)
	}
	return append(b, byte(n>>8), byte(n)), nil
}

// skipAddress reads the address behind a reply. We do not need it.
func skipAddress(c io.Reader, kind byte) error {
	n := 0
	switch kind {
	case socks5IPv4:
		n = net.IPv4len
	case socks5IPv6:
		n = net.IPv6len
	case socks5Name:
		length := make([]byte, 1)
		if _, err := io.ReadFull(c, length); err != nil {
			return err
		}
		n = int(length[0])
	default:
		return newSlowError(fmt.Sprintf("sent an address of the unknown type %d", kind))
	}
	_, err := io.ReadFull(c, make([]byte, n+2)) // and the port
	return err
}

// socks5Replies has the replies of RFC 1928, section 6. If the proxy does not allow or support our
// request, a person must mend that. All other replies are about the way to the server, which may work
// again later.
var socks5Replies = map[byte]error{
	1: errors.New("general failure"),
	2: newSlowError("not allowed by its rules"),
	3: errors.New("network unreachable"),
	4: errors.New("host unreachable"),
	5: errors.New("connection refused"),
	6: errors.New("TTL expired"),
	7: newSlowError("command not supported"),
	8: newSlowError("address type not supported"),
}
