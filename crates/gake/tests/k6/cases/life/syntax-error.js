export default function () { let = ; }
