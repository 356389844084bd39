package decimal

// Round returns d rounded half away from zero to scale digits after the point.
// A larger scale than d's appends zeros; it fails with [ErrOverflow] if they do
// not fit. A negative scale rounds digits before the point and gives scale 0.
func (d Decimal) Round(scale int) (Decimal, error) {
	if scale >= int(d.scale) {
		return d.extend(scale)
	}
	cut := int(d.scale) - scale
	if cut > maxDigits {
		return Decimal{scale: uint8(max(scale, 0))}, nil
	}
	divPow10(d.w[:], cut-1)
	if divSmall(d.w[:], 10) >= 5 {
		addSmall(d.w[:], 1)
	}
	return d.settle(scale)
}

// Truncate returns d with the digits after the first scale ones cut off. A
// larger scale than d's, and a negative one, work as in [Decimal.Round].
func (d Decimal) Truncate(scale int) (Decimal, error) {
	if scale >= int(d.scale) {
		return d.extend(scale)
	}
	divPow10(d.w[:], min(int(d.scale)-scale, maxDigits+1))
	return d.settle(scale)
}

// Ceil returns the smallest integer that is not below d.
func (d Decimal) Ceil() Decimal { return d.toInteger(!d.neg) }

// Floor returns the largest integer that is not above d.
func (d Decimal) Floor() Decimal { return d.toInteger(d.neg) }

func (d Decimal) toInteger(away bool) Decimal {
	if lost := divPow10(d.w[:], int(d.scale)); lost && away {
		addSmall(d.w[:], 1)
	}
	d.scale = 0
	d.neg = d.neg && !d.IsZero()
	return d
}

// extend appends zeros up to scale.
func (d Decimal) extend(scale int) (Decimal, error) {
	if scale == int(d.scale) {
		return d, nil
	}
	if scale > maxDigits || d.Digits()+scale-int(d.scale) > maxDigits {
		return Decimal{}, ErrOverflow
	}
	mulPow10(d.w[:], scale-int(d.scale))
	d.scale = uint8(scale)
	return d, nil
}

// settle gives d, a multiple of 10^-scale, its scale.
func (d Decimal) settle(scale int) (Decimal, error) {
	if scale < 0 {
		if d.IsZero() {
			return Decimal{}, nil
		}
		if d.Digits()-scale > maxIntegerDigits {
			return Decimal{}, ErrOverflow
		}
		mulPow10(d.w[:], -scale)
		scale = 0
	}
	d.scale = uint8(scale)
	d.neg = d.neg && !d.IsZero()
	return d.fit()
}

// Max returns the largest number of DECIMAL(precision, scale).
func Max(precision, scale int) Decimal {
	d := Decimal{w: pow10[precision], scale: uint8(scale)}
	sub(d.w[:], pow10[0][:])
	return d
}

// Fit rounds d to DECIMAL(precision, scale). lost reports that digits other
// than zeros were rounded off. On overflow ok is false and the result is the
// type's largest number with d's sign.
func (d Decimal) Fit(precision, scale int) (r Decimal, lost, ok bool) {
	r, err := d.Round(scale)
	if err != nil || cmp(r.w[:], pow10[precision][:]) >= 0 {
		r = Max(precision, scale)
		r.neg = d.neg
		return r, true, false
	}
	if int(d.scale) > scale {
		lost = compareMagnitude(&r, &d) != 0
	}
	return r, lost, true
}

// Huge returns 10^65, the smallest integer that no DECIMAL type holds: what
// stands for numbers too large to be represented.
func Huge() Decimal { return Decimal{w: pow10[MaxPrecision]} }
