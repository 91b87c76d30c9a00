package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// rules say which calls the shop refuses.
type rules struct {
	NoCarrier []string // countries to which no carrier delivers
	CardLimit int64    // largest amount of a charge, in cents
	Stock     int64    // number of pieces of each article before the first sale
}

// An operation describes one kind of call.
type operation struct {
	path   string
	undoes string // kind of call that this kind undoes; "" = it is not an undo
	id     string // field of the answer that holds the identifier of the created thing; "" = none
}

// operations holds all kinds of calls, by their names.
var operations = map[string]operation{
	"reserve": {path: "/inventory/reserve", id: "reservation_id"},
	"release": {path: "/inventory/release", undoes: "reserve"},
	"charge":  {path: "/payment/charge", id: "charge_id"},
	"refund":  {path: "/payment/refund", undoes: "charge"},
	"book":    {path: "/shipping/book", id: "booking_id"},
	"cancel":  {path: "/shipping/cancel", undoes: "book"},
	"message": {path: "/mail/send", id: "message_id"},
}

// A request is the body of a call of any kind.
type request struct {
	Order   string   `json:"order"`
	SKU     string   `json:"sku,omitempty"`     // article; only for the kind `reserve`
	Qty     int64    `json:"qty,omitempty"`     // number of pieces; only for the kind `reserve`
	Amount  int64    `json:"amount,omitempty"`  // amount in cents; only for the kind `charge`
	Country string   `json:"country,omitempty"` // two-letter country code; only for the kind `book`
	Parcels []string `json:"parcels,omitempty"` // reservations to ship; only for the kind `book`
	To      string   `json:"to,omitempty"`      // recipient; only for the kind `message`
	Text    string   `json:"text,omitempty"`    // text of the message; only for the kind `message`
	Key     string   `json:"key,omitempty"`     // idempotency key of the call that this undo undoes
	Reason  string   `json:"reason,omitempty"`  // reason for an undo
}

// service is the HTTP interface of the shop.
type service struct {
	store  *store
	rules  rules
	faults *faults
}

func newService(st *store, r rules, f *faults) http.Handler {
	s := &service{store: st, rules: r, faults: f}
	mux := http.NewServeMux()
	for kind, op := range operations {
		mux.HandleFunc("POST "+op.path, func(w http.ResponseWriter, r *http.Request) { s.call(w, r, kind, op) })
	}
	mux.HandleFunc("PUT /faults/{kind}", s.setFault)
	return mux
}

// setFault replaces the fault of one kind of call. The body of the request holds the settings.
func (s *service) setFault(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err == nil {
		err = s.faults.set(r.PathValue("kind"), string(body))
	}
	if err != nil {
		refuse(http.StatusBadRequest, "invalid", err.Error()).write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// call handles one request of an agent. It records that the request has arrived, applies the
// fault that is set for calls of this kind, does the work, and writes the answer.
func (s *service) call(w http.ResponseWriter, r *http.Request, kind string, op operation) {
	rec, req, bad := s.read(w, r, kind, op)
	if bad != nil {
		bad.write(w)
		return
	}
	known, err := s.store.arrive(r.Context(), rec)
	if err != nil {
		broken(w, err)
		return
	}
	if known.Kind != kind || known.Undoes != rec.Undoes || known.Fingerprint != rec.Fingerprint {
		refuse(http.StatusUnprocessableEntity, "key_reused", "this Idempotency-Key came with another request before").write(w)
		return
	}
	f := s.faults.of(kind, known.Arrivals)
	if !f.After && !endure(r.Context(), w, f) {
		return
	}
	// The shop finishes its work even if the caller has ended the connection. Remote
	// services do the same, and an engine must be able to handle that.
	out, err := s.act(context.WithoutCancel(r.Context()), rec.Key, op, req)
	if err != nil {
		broken(w, err)
		return
	}
	if f.After && !endure(r.Context(), w, f) {
		return
	}
	out.write(w)
}

// endure applies the fault f. It returns true if the call must continue. It returns false if the
// fault has answered the call, or if the caller no longer waits for an answer.
func endure(ctx context.Context, w http.ResponseWriter, f fault) bool {
	if f.Delay > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(f.Delay):
		}
	}
	if f.Status == 0 {
		return true
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	refuse(f.Status, "fault", "failing on request").write(w)
	return false
}

// read reads a call and checks its fields. If the call is not valid, it returns the answer that
// refuses the call.
func (s *service) read(w http.ResponseWriter, r *http.Request, kind string, op operation) (record, request, *answer) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 200 {
		return record{}, request{}, refuse(http.StatusBadRequest, "key_required", "every call needs an Idempotency-Key of at most 200 bytes")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		return record{}, request{}, refuse(http.StatusRequestEntityTooLarge, "too_large", err.Error())
	}
	var req request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		return record{}, request{}, refuse(http.StatusBadRequest, "invalid", "body: "+err.Error())
	}
	missing := ""
	switch {
	case req.Order == "":
		missing = "order"
	case op.undoes != "" && req.Key == "":
		missing = "key"
	case op.undoes == "" && req.Key != "":
		return record{}, request{}, refuse(http.StatusBadRequest, "invalid", "key: only an undo takes it")
	case kind == "reserve" && (req.SKU == "" || req.Qty < 1):
		missing = "sku and qty"
	case kind == "charge" && req.Amount < 1:
		missing = "amount"
	case kind == "book" && len(req.Country) != 2:
		missing = "country"
	case kind == "message" && req.Text == "":
		missing = "text"
	}
	if missing != "" {
		return record{}, request{}, refuse(http.StatusBadRequest, "invalid", missing+": needed")
	}
	// Equal requests give equal text, even if the order of their fields differs.
	canonical, err := json.Marshal(req)
	if err != nil {
		return record{}, request{}, refuse(http.StatusBadRequest, "invalid", err.Error())
	}
	sum := sha256.Sum256(canonical)
	return record{
		Key: key, Kind: kind, Order: req.Order, Item: req.SKU, Qty: req.Qty, Amount: req.Amount,
		Undoes: req.Key, Fingerprint: hex.EncodeToString(sum[:8]),
	}, req, nil
}

// act does the work of a call in one transaction, and returns the answer. If the work for this key
// was done before, it returns the recorded answer.
func (s *service) act(ctx context.Context, key string, op operation, req request) (out *answer, err error) {
	err = s.store.tx(ctx, func(tx *sql.Tx) error {
		rec, ok, err := find(ctx, tx, key)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("no arrival of %s", key)
		case rec.Applied || op.undoes != "" && rec.Status != 0:
			out = &answer{status: rec.Status, body: []byte(rec.Answer)}
			return nil
		case op.undoes != "":
			out, err = s.undo(ctx, tx, &rec, op)
		case rec.Undone:
			out = refuse(http.StatusGone, "undone", "this call was undone before it came")
		default:
			out, err = s.do(ctx, tx, &rec, op, req)
		}
		if err != nil {
			return err
		}
		rec.Status, rec.Answer = out.status, string(out.body)
		return settle(ctx, tx, rec)
	})
	return out, err
}

// do applies a call that is not an undo, or refuses the call. A caller may repeat a refused call.
func (s *service) do(ctx context.Context, tx *sql.Tx, rec *record, op operation, req request) (*answer, error) {
	switch rec.Kind {
	case "reserve":
		there, err := onHand(ctx, tx, req.SKU, s.rules.Stock)
		if err != nil {
			return nil, err
		}
		if there < req.Qty {
			return refuse(http.StatusConflict, "out_of_stock", fmt.Sprintf("%d of %s wanted, %d there", req.Qty, req.SKU, there)), nil
		}
		if _, err := move(ctx, tx, req.SKU, s.rules.Stock, -req.Qty); err != nil {
			return nil, err
		}
	case "charge":
		if req.Amount > s.rules.CardLimit {
			return refuse(http.StatusPaymentRequired, "card_declined", fmt.Sprintf("%d is over the card's limit of %d", req.Amount, s.rules.CardLimit)), nil
		}
	case "book":
		if slices.Contains(s.rules.NoCarrier, req.Country) {
			return refuse(http.StatusUnprocessableEntity, "no_carrier", "nobody delivers to "+req.Country), nil
		}
	}
	rec.Applied = true
	body := map[string]any{op.id: identifier(rec.Kind, rec.Key)}
	if rec.Kind == "book" {
		body["tracking"] = identifier("track", rec.Key)
	}
	return reply(http.StatusCreated, body), nil
}

// undo reverts the effect of the call with the key rec.Undoes. If that call has not arrived yet,
// undo inserts a tombstone; then the shop refuses that call if it arrives later. If that call had
// no effect, undo only marks its row, so that the shop refuses repetitions of the call.
func (s *service) undo(ctx context.Context, tx *sql.Tx, rec *record, op operation) (*answer, error) {
	forward, ok, err := find(ctx, tx, rec.Undoes)
	if err != nil {
		return nil, err
	}
	switch {
	case !ok:
		if err := bury(ctx, tx, rec.Undoes, op.undoes, rec.Order); err != nil {
			return nil, err
		}
	case forward.Kind != op.undoes || forward.Order != rec.Order:
		return refuse(http.StatusUnprocessableEntity, "wrong_key", "the key belongs to another call"), nil
	case !forward.Undone:
		if forward.Applied && forward.Kind == "reserve" {
			if _, err := move(ctx, tx, forward.Item, s.rules.Stock, forward.Qty); err != nil {
				return nil, err
			}
		}
		rec.Applied = forward.Applied
		forward.Undone = true
		if err := settle(ctx, tx, forward); err != nil {
			return nil, err
		}
	}
	return reply(http.StatusOK, map[string]any{"undone": rec.Applied}), nil
}

// identifier computes the shop's identifier of a created thing from the key of the call.
func identifier(kind, key string) string {
	sum := sha256.Sum256([]byte(kind + "/" + key))
	return kind + "-" + hex.EncodeToString(sum[:5])
}

// An answer is the HTTP response to a call.
type answer struct {
	status int
	body   []byte
}

func reply(status int, body any) *answer {
	data, err := json.Marshal(body)
	if err != nil { // cannot happen for maps of strings and booleans
		return &answer{status: http.StatusInternalServerError}
	}
	return &answer{status: status, body: data}
}

func refuse(status int, code, message string) *answer {
	return reply(status, map[string]string{"code": code, "message": message})
}

func (a *answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the caller may have ended the connection
}

func broken(w http.ResponseWriter, err error) {
	log.Print("shop: ", err)
	refuse(http.StatusInternalServerError, "broken", "the shop could not do it").write(w)
}
