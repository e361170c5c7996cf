export default function () { function f() { throw Error('plain'); } f(); }
