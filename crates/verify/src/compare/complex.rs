//! Complex numbers over [`Real`], principal values; odd roots of negative numbers are real.

use super::real::{Calculator, Fail, Found, Real};

#[derive(Clone, Debug)]
pub(crate) struct Complex {
    pub(crate) re: Real,
    pub(crate) im: Real,
}

impl From<Real> for Complex {
    fn from(re: Real) -> Complex {
        Complex { re, im: Real::zero() }
    }
}

impl Complex {
    pub(crate) fn integer(value: i64) -> Complex {
        Real::integer(value).into()
    }

    pub(crate) fn i() -> Complex {
        Complex { re: Real::zero(), im: Real::integer(1) }
    }

    /// Without an imaginary part for certain.
    pub(crate) fn is_real(&self) -> bool {
        self.im.is_exact_zero()
    }

    /// Real as far as the error allows.
    pub(crate) fn may_be_real(&self) -> bool {
        self.im.may_be_zero()
    }

    pub(crate) fn neg(&self) -> Complex {
        Complex { re: self.re.neg(), im: self.im.neg() }
    }

    pub(crate) fn conjugate(&self) -> Complex {
        Complex { re: self.re.clone(), im: self.im.neg() }
    }

    pub(crate) fn magnitude(&self) -> i64 {
        self.re.magnitude().max(self.im.magnitude())
    }

    pub(crate) fn error(&self) -> f64 {
        self.re.error().max(self.im.error())
    }

    pub(crate) fn may_be_zero(&self) -> bool {
        self.re.may_be_zero() && self.im.may_be_zero()
    }

    /// The real part of a number that must be real.
    pub(crate) fn real(&self) -> Found<&Real> {
        if self.may_be_real() { Ok(&self.re) } else { Err(Fail::Undefined) }
    }
}

impl Calculator<'_> {
    pub(crate) fn cadd(&mut self, a: &Complex, b: &Complex) -> Found<Complex> {
        Ok(Complex { re: self.add(&a.re, &b.re)?, im: self.add(&a.im, &b.im)? })
    }

    pub(crate) fn cmul(&mut self, a: &Complex, b: &Complex) -> Found<Complex> {
        if a.is_real() && b.is_real() {
            return Ok(self.mul(&a.re, &b.re)?.into());
        }
        let (rr, ii) = (self.mul(&a.re, &b.re)?, self.mul(&a.im, &b.im)?);
        let (ri, ir) = (self.mul(&a.re, &b.im)?, self.mul(&a.im, &b.re)?);
        Ok(Complex { re: self.sub(&rr, &ii)?, im: self.add(&ri, &ir)? })
    }

    pub(crate) fn cdiv(&mut self, a: &Complex, b: &Complex) -> Found<Complex> {
        if b.is_real() {
            return Ok(Complex { re: self.div(&a.re, &b.re)?, im: self.div(&a.im, &b.re)? });
        }
        let norm = self.norm(b)?;
        let top = self.cmul(a, &b.conjugate())?;
        Ok(Complex { re: self.div(&top.re, &norm)?, im: self.div(&top.im, &norm)? })
    }

    /// The square of the absolute value.
    fn norm(&mut self, a: &Complex) -> Found<Real> {
        let (re, im) = (self.mul(&a.re, &a.re)?, self.mul(&a.im, &a.im)?);
        self.add(&re, &im)
    }

    pub(crate) fn cabs(&mut self, a: &Complex) -> Found<Complex> {
        if a.is_real() {
            return Ok(a.re.abs().into());
        }
        let norm = self.norm(a)?;
        Ok(self.root(&norm, 2)?.into())
    }

    pub(crate) fn cexp(&mut self, a: &Complex) -> Found<Complex> {
        let size = self.exp(&a.re)?;
        if a.is_real() {
            return Ok(size.into());
        }
        let (sin, cos) = self.sin_cos(&a.im)?;
        Ok(Complex { re: self.mul(&size, &cos)?, im: self.mul(&size, &sin)? })
    }

    pub(crate) fn cln(&mut self, a: &Complex) -> Found<Complex> {
        if a.is_real() && !a.re.is_negative() {
            return Ok(self.ln(&a.re)?.into());
        }
        let norm = self.norm(a)?;
        let double = self.ln(&norm)?;
        let re = self.div(&double, &Real::integer(2))?;
        Ok(Complex { re, im: self.atan2(&a.im, &a.re)? })
    }

    /// To a whole power.
    pub(crate) fn cpowi(&mut self, base: &Complex, exponent: i64) -> Found<Complex> {
        let mut left = exponent.unsigned_abs();
        let (mut square, mut total) = (base.clone(), Complex::integer(1));
        while left > 0 {
            if left & 1 == 1 {
                total = self.cmul(&total, &square)?;
            }
            left >>= 1;
            if left > 0 {
                square = self.cmul(&square, &square)?;
            }
        }
        if exponent < 0 { self.cdiv(&Complex::integer(1), &total) } else { Ok(total) }
    }

    /// To the power top / bottom, in lowest terms.
    pub(crate) fn cpowq(&mut self, base: &Complex, top: i64, bottom: u32) -> Found<Complex> {
        if bottom == 1 {
            return self.cpowi(base, top);
        }
        if base.is_real() && bottom <= 64 {
            let root = if !base.re.is_negative() {
                Some(self.root(&base.re, bottom as usize)?.into())
            } else if bottom % 2 == 1 {
                Some(Complex::from(self.root(&base.re.neg(), bottom as usize)?.neg()))
            } else if bottom == 2 {
                Some(Complex { re: Real::zero(), im: self.root(&base.re.neg(), 2)? })
            } else {
                None
            };
            if let Some(root) = root {
                return self.cpowi(&root, top);
            }
        }
        let ln = self.cln(base)?;
        let scaled = self.cmul(&ln, &Complex::integer(top))?;
        let exponent = self.cdiv(&scaled, &Complex::integer(bottom.into()))?;
        self.cexp(&exponent)
    }

    pub(crate) fn cpow(&mut self, base: &Complex, exponent: &Complex) -> Found<Complex> {
        if base.is_real() && base.re.is_exact_zero() {
            return if exponent.re.is_positive() { Ok(Complex::integer(0)) } else { Err(Fail::Undefined) };
        }
        if exponent.is_real()
            && let Some(whole) = exponent.re.as_integer()
            && let Ok(whole) = i64::try_from(&whole)
        {
            return self.cpowi(base, whole);
        }
        let ln = self.cln(base)?;
        let product = self.cmul(&ln, exponent)?;
        self.cexp(&product)
    }

    /// Sine and cosine.
    pub(crate) fn csin_cos(&mut self, a: &Complex) -> Found<(Complex, Complex)> {
        let (sin, cos) = self.sin_cos(&a.re)?;
        if a.is_real() {
            return Ok((sin.into(), cos.into()));
        }
        let (sinh, cosh) = self.sinh_cosh(&a.im)?;
        let sine = Complex { re: self.mul(&sin, &cosh)?, im: self.mul(&cos, &sinh)? };
        let cosine = Complex { re: self.mul(&cos, &cosh)?, im: self.mul(&sin, &sinh)?.neg() };
        Ok((sine, cosine))
    }

    pub(crate) fn sinh_cosh(&mut self, a: &Real) -> Found<(Real, Real)> {
        let (up, down) = (self.exp(a)?, self.exp(&a.neg())?);
        let two = Real::integer(2);
        let (difference, sum) = (self.sub(&up, &down)?, self.add(&up, &down)?);
        Ok((self.div(&difference, &two)?, self.div(&sum, &two)?))
    }
}
