package conn

import (
	"fmt"
	"strings"
)

// limits are the cases of groups 9 and 10: large messages, many fragments, many messages.
func limits() (cs []autobahn) {
	stars := strings.Repeat("*", 64<<10)
	cs = append(cs, passes("10.1.1", 0, inFragments(text, stars, 1300), said(text, stars)))
	for i, pattern := range []string{"BAsd7&jh23", "\x00\xfe\x23\xfa\xf0"} {
		op, fill := byte(text+i), []string{"*", "\xfe"}[i]
		pass := func(group, number, chop int, sends string, data string) {
			cs = append(cs, passes(fmt.Sprintf("9.%d.%d", group+i, number+1), chop, sends, said(op, data)))
		}
		payload := func(size int) string { return strings.Repeat(pattern, size/len(pattern)+1)[:size] }
		for j, size := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20} {
			pass(1, j, 0, large(fin|op, payload(size)), payload(size))
		}
		data := strings.Repeat(fill, 4<<20)
		for j := range 9 {
			pass(3, j, 0, inFragments(op, data, 64<<(2*j)), data)
		}
		for j := range 6 {
			pass(5, j, 64<<j, large(fin|op, payload(1<<20)), payload(1<<20))
		}
		for j, size := range []int{0, 16, 64, 256, 1 << 10, 4 << 10} {
			message := strings.Repeat(fill, size)
			c := passes(fmt.Sprintf("9.%d.%d", 7+i, j+1), 0, frame(fin|op, message), said(op, message))
			for range 1000 - 1 { // one after the answer to the other
				c.steps = append(c.steps[:1:1], c.steps...)
			}
			cs = append(cs, c)
		}
	}
	return cs
}

// inFragments is a message in fragments of that size.
func inFragments(op byte, data string, size int) string {
	var all strings.Builder
	for at := 0; at < len(data); at += size {
		first := op
		if at > 0 {
			first = 0
		}
		if at+size >= len(data) {
			first |= fin
		}
		all.WriteString(large(first, data[at:min(at+size, len(data))]))
	}
	return all.String()
}
