package subscription_test

import (
	"fmt"
	"time"
)

// reply works off a request and answers it.
func (v *venue) reply(p *client, r venueRequest, f venueFault) {
	answers := v.answers(p, r, f.Err)
	if f.Foreign != "" {
		p.send(venueMessage{Answer: true, Op: r.Op, ID: f.Foreign})
	}
	switch {
	case f.Lost || v.o.Mute:
		return
	case f.Twice:
		answers = append(answers, answers...)
	}
	if f.Late <= 0 {
		p.send(answers...)
		return
	}
	time.AfterFunc(f.Late, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		p.send(answers...)
	})
}

// answers works off a request, unless there is an error, and returns the answers to it.
func (v *venue) answers(p *client, r venueRequest, failure string) []venueMessage {
	whole := venueMessage{Answer: true, Op: r.Op, ID: r.ID, Keys: r.Keys}
	why := make([]string, len(r.Keys)) // a key is refused; "": it is not
	var bad []string
	for i, key := range r.Keys {
		if why[i] = failure; failure == "" {
			why[i] = v.refusal(p, r.Op, key)
		}
		if why[i] == "" {
			continue
		}
		bad = append(bad, key)
		if whole.Error == "" || why[i] != redundant { // which would not be true of all
			whole.Error = why[i]
		}
	}
	var each []venueMessage
	for i, key := range r.Keys {
		m := venueMessage{Answer: true, Op: r.Op, Keys: []string{key}, Error: why[i]}
		if why[i] == "" && (len(bad) == 0 || v.o.Partial || v.o.KeyByKey) {
			m.Tag = v.change(p, r.Op, key)
			whole.Tag = m.Tag
		}
		each = append(each, m)
	}
	switch {
	case v.o.KeyByKey:
		return each
	case v.o.Bare:
		return []venueMessage{{Answer: true, Error: whole.Error}}
	case v.o.Partial:
		whole.Refused = bad
	}
	return []venueMessage{whole}
}

// redundant is the error for what is already so.
const redundant = "redundant"

// refusal returns why a key is refused, "" if it is not.
func (v *venue) refusal(p *client, op, key string) string {
	_, has := p.held[v.named(p, key)]
	same := has == (op == "subscribe")
	if same {
		v.stats.Redundant++
	}
	switch {
	case op == "subscribe" && v.o.Bad != nil && v.o.Bad(key):
		return "unknown key"
	case same && v.o.Strict:
		return redundant
	}
	return ""
}

// named returns the key that has this tag, or the key itself.
func (v *venue) named(p *client, key string) string {
	for k, tag := range p.held {
		if v.o.Tags && tag == key {
			return k
		}
	}
	return key
}

// change subscribes or unsubscribes a key, and returns its tag.
func (v *venue) change(p *client, op, key string) (tag string) {
	if op == "subscribe" {
		return v.subscribe(p, key)
	}
	delete(p.held, v.named(p, key))
	return ""
}

func (v *venue) subscribe(p *client, key string) (tag string) {
	if v.o.Tags {
		tag = fmt.Sprintf("%s#%d", key, p.number)
	}
	p.held[key] = tag
	return tag
}
